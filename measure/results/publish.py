"""Pages from runs: each table between its marks with the day and the machine below, the performance page, and README's figures.

The newest run that has a table counts; a table that no run has is unchanged. Quick runs are left out, as are results
that were measured beside other work, unless their run was made to have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from measure.results import performance, speed
from measure.results.machine import Use
from measure.results.record import Result, Run, Table
from measure.tables import check_marks, replace_between


class Measured(NamedTuple):
    """A result, with its run."""

    result: Result
    run: Run


def usable(runs: Iterable[Run]) -> list[Measured]:
    """Return the results that may be published, oldest first."""
    return [
        Measured(result, run)
        for run in sorted(runs, key=lambda run: run.began)
        if not run.quick
        for result in run.results
        if run.anyway or not Use(result.others, result.steal).why_not
    ]


def stamp(one: Measured) -> str:
    """Return the line below a table: when and where it was measured, and beside which work."""
    disturbed = Use(one.result.others, one.result.steal).why_not
    return one.run.stamp if not disturbed else f"{one.run.stamp.removesuffix('.*')}. Not quiet: {disturbed}.*"


def tables(measured: Iterable[Measured]) -> dict[tuple[str, str], str]:
    """Return the text between each page's marks; of several turns of a program, the first, as others measure a part of it."""
    newest: dict[tuple[str, str], tuple[Table, Measured]] = {}
    for one in measured:
        for table in one.result.tables if one.result.turn == 1 else ():
            newest[table.page, table.mark] = table, one
    return {key: f"{table.text}\n\n{stamp(one)}" for key, (table, one) in newest.items()}


class Files(NamedTuple):
    """The documents that are written: the folder of pages, and README."""

    docs: Path
    readme: Path

    def of(self, page: str) -> Path:
        """Return the file of a page."""
        return self.readme if page == "README.md" else self.docs / page


def texts(measured: list[Measured]) -> dict[tuple[str, str], str]:
    """Return everything that is written into pages, by page and mark."""
    found = tables(measured)
    newest = _newest(measured)
    if newest:
        found["performance.md", "performance"] = performance.text(newest)
    if quoted := speed.text([(one.result, one.run) for one in measured]):
        found["README.md", "speed"] = quoted
    return found


def charts(measured: list[Measured]) -> dict[str, str]:
    """Return the SVG of each chart of the performance page, by its file's name."""
    return performance.charts(_newest(measured))


def _newest(measured: list[Measured]) -> dict[str, performance.Compared]:
    """Return the newest comparisons of each subject, with the line of when and where; of several turns, the first."""
    found: dict[str, performance.Compared] = {}
    for one in measured:
        subjects = dict.fromkeys(comparison.subject for comparison in one.result.comparisons)
        for subject in subjects if one.result.turn == 1 else ():
            cases = [comparison for comparison in one.result.comparisons if comparison.subject == subject]
            found[subject] = performance.Compared(cases, stamp(one), one.run.versions)
    return found


def write(measured: list[Measured], files: Files) -> list[Path]:
    """Write pages and charts; return the files that differ from before. All marks are looked for before any is written."""
    wanted = texts(measured)
    for page, mark in wanted:
        check_marks(files.of(page), mark)
    return [*_changed_pages(wanted, files), *_changed_charts(charts(measured), files.docs)]


def _changed_pages(wanted: Mapping[tuple[str, str], str], files: Files) -> list[Path]:
    before = {files.of(page): files.of(page).read_text(encoding="utf-8") for page, _ in wanted}
    for (page, mark), text in wanted.items():
        replace_between(files.of(page), mark, text)
    return [page for page, text in before.items() if page.read_text(encoding="utf-8") != text]


def _changed_charts(wanted: Mapping[str, str], docs: Path) -> Iterator[Path]:
    for name, svg in wanted.items():
        file = docs / name
        if not file.exists() or file.read_text(encoding="utf-8") != svg:
            file.write_text(svg, encoding="utf-8")
            yield file
