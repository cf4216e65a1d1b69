"""The text and the charts of docs/performance.md: each subject with its cases, who is faster, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from measure.results import charts as drawing
from measure.results.record import Comparison
from measure.tables import markdown_table


class Compared(NamedTuple):
    """Cases of one subject, with the line of when and where they were measured, and the versions."""

    cases: Sequence[Comparison]
    stamp: str
    versions: Mapping[str, str]


class Subject(NamedTuple):
    """A section of the page: its title, what each way does, and the package or program of each way that has a version."""

    title: str
    text: str


SUBJECTS: Final[Mapping[str, Subject]] = {
    "aggregates of a table": Subject(
        "Sliding windows of a table, by key",
        "Count, average and maximum of each key, over windows of an hour every minute, of rows in parquet files; all answers are written as parquet, by skypane with `output=`. "
        "DuckDB sums each minute first and slides over these sums, on a grid of all keys and minutes; polars uses `group_by_dynamic`.",
    ),
    "aggregates of a stream": Subject(
        "Sliding windows of a stream, by key",
        "The same rows, functions and windows; a row may be up to a minute out of order, and answers are written once a window is complete. skypane and Spark read "
        "files, a micro-batch each, and write parquet with a checkpoint. WindFlow, a C++ library, has one thread each for rows, windows and answers; it first reads a file of binary "
        "records into memory, and writes such a file, without a checkpoint. Its operator is `Ffat_Windows`, for functions that combine partial results.",
    ),
    "skylines by group": Subject(
        "Skylines of windows, by group",
        "The skyline of each of 16 groups, over windows of a second every 0.2 s, of 100,000 rows a second of event time that are up to 0.2 s out of order. "
        "WindFlow keeps the skyline of each open window and compares each row with it (block nested loops). It has one thread each for rows, windows and answers, and reads and "
        "writes files of binary records, without a checkpoint. "
        "The size of a micro-batch matters to skypane, so two are shown.",
    ),
    "skylines of a stream": Subject(
        "Skylines of windows, without groups",
        "The same windows without groups, against the C++ program of paper 1 with one thread for panes and one for windows. *A Python stage* is Spark "
        "passing the rows through Python and back without computing anything, with Spark's sum of the bytes after each row switched off, as in the engine; "
        "its rows go back to Spark, those of the engine's answers into files. The C++ counts the rows of its answers; from 8 criteria on it gets only the first half million rows, so compare its rows per second and not its seconds. Rows per second of pipelines on Spark are those of whole "
        "micro-batches after the first two of a stream, their CPU seconds those of all; the C++ is measured from the first row to its end.",
    ),
    "skyline of a table": Subject(
        "The skyline of a table",
        "A table in memory, and its skyline counted. Spark and DuckDB answer it as SQL can: `NOT EXISTS` a row that is at least as good in all criteria and "
        "better in one. moocore is a library in C without streams, windows or Spark.",
    ),
    "merge of inputs": Subject(
        "Merging sorted inputs",
        "Many inputs, each sorted by time, become one sequence. T-Gate is the structure of paper 2, with two producers and a consumer in threads; the columnar merge is what "
        "skypane uses. `heapq.merge` and Java's `PriorityQueue` merge arrays that are complete before they begin, which is less work.",
    ),
}
"""Sections in the order of the page."""


def text(newest: Mapping[str, Compared]) -> str:
    """Return the sections of all subjects that were measured."""
    return "\n\n".join(section(name, subject, newest[name]) for name, subject in SUBJECTS.items() if name in newest)


def section(name: str, subject: Subject, compared: Compared) -> str:
    """Return a section: text, chart, table, who is faster, what was not measured, when and where."""
    alt = "; ".join(map(drawing.described, compared.cases))
    parts = [
        f"## {subject.title}",
        subject.text,
        f"![Rows per second. {alt}]({file_of(name)})",
        table(compared.cases),
        "\n".join(f"- {verdict(case)}" for case in compared.cases),
        *missing(compared.cases),
        f"{compared.stamp.removesuffix('.*')}; {programs(compared.versions)}.*",
    ]
    return "\n\n".join(parts)


def file_of(name: str) -> str:
    """Return the name of a subject's chart."""
    return f"performance-{name.replace(' ', '-')}.svg"


def charts(newest: Mapping[str, Compared]) -> dict[str, str]:
    """Return the charts of all subjects that were measured, by file."""
    return {
        file_of(name): drawing.rows_per_second(newest[name].cases, subject.title)
        for name, subject in SUBJECTS.items()
        if name in newest
    }


def table(cases: Sequence[Comparison]) -> str:
    """Return all ways of all cases, the fastest first, with medians, ranges and ratios."""
    lines = [
        [
            case.case,
            side,
            drawing.short(case.rate(side)),
            f"{drawing.short(min(case.rates(side)))} to {drawing.short(max(case.rates(side)))}",
            f"{case.wall(side):.2f}",
            "-" if (cpu := case.cpu(side)) is None else f"{cpu:.2f}",
            "1" if side == case.ours else f"{1 / case.ratio(side):.2f}",
        ]
        for case in cases
        for side in drawing.fastest(case)
    ]
    head = ["case", "way", "rows/s", "of all rounds", "seconds", "CPU seconds"]
    return markdown_table([*head, f"times {cases[0].ours}"], lines)


def verdict(case: Comparison) -> str:
    """Return who is faster than ours, and who is slower, and by how much, in a sentence."""
    others = [side for side in drawing.fastest(case) if not drawing.is_ours(side, case)]
    faster = [f"{side} ({times(1 / case.ratio(side))})" for side in others if case.ratio(side) < 1]
    slower = [f"{side} ({times(case.ratio(side))})" for side in others if case.ratio(side) >= 1]
    said = []
    if faster:
        said.append(f"faster than {case.ours}: {', '.join(faster)}")
    if slower:
        said.append(f"slower: {', '.join(slower)}")
    return f"{case.case}: {'; '.join(said) or 'nothing else was measured'}."


def times(ratio: float) -> str:
    """Return a ratio as it is read: 1.25 times, 12 times."""
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times" if ratio >= 2 else f"{ratio:.2f} times"


def missing(cases: Sequence[Comparison]) -> list[str]:
    """Return what was not measured, why, and in which cases if not in all; nothing if all was."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        for side, why in case.missing.items():
            lacking.setdefault((side, why), []).append(case.case)
    said = []
    for (side, why), where in lacking.items():
        some = "" if len(where) == len(cases) else f" with {' and '.join(where)}"
        said.append(f"{side}{some} ({why})")
    return [f"Not measured in this run: {'; '.join(said)}."] if said else []


def programs(versions: Mapping[str, str]) -> str:
    """Return the versions of what the page compares."""
    names = {
        "pyspark": "PySpark",
        "java": "Java",
        "duckdb": "DuckDB",
        "polars": "polars",
        "windflow": "WindFlow",
        "moocore": "moocore",
    }
    return ", ".join(f"{name} {versions[key]}" for key, name in names.items() if key in versions)
