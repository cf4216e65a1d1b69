"""README quotes ranges over three turns of one run, with the identity that measures as little as the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from measure.bench.latency import HEAD as OF_LATENCY
from measure.bench.papers_cpp import HEAD as OF_PAPERS
from measure.bench.streaming import HEAD as OF_STREAMING
from measure.results.record import Result, Run, Table
from measure.results.speed import TURNS, cells, text
from tests.measure.results.runs import result, run


def lines_with(head: Sequence[str], *lines: Mapping[str, str]) -> list[list[str]]:
    """Lines with these cells, and a 1 in every other column."""
    assert {name for line in lines for name in line} <= {*head}
    return [[line.get(name, "1") for name in head] for line in lines]


def streaming(turn: int, engine: float) -> Result:
    lines = [
        {
            "rows/batch": "1,000,000",
            "criteria": d,
            "identity, rows/s": "900,000",
            "unmeasured, rows/s": f"{1.3e6 + turn * 1e5:,.0f}",
            "engine, rows/s": f"{engine / int(d):,.0f}",
        }
        for d in ("4", "8")
    ]
    lines.append({"rows/batch": "100,000", "criteria": "4"})
    table = Table("bench-streaming.md", "streaming", OF_STREAMING, lines_with(OF_STREAMING, *lines))
    return result("streaming", turn, found=[table])


def latency(turn: int) -> Result:
    fast = {"rows/s": "50,000", "criteria": "4", "p50, ms": f"{180 + 10 * turn}", "p95, ms": "270"}
    lines = lines_with(OF_LATENCY, fast, {"rows/s": "1,000", "criteria": "4"})
    return result("latency", turn, found=[Table("bench-streaming.md", "latency", OF_LATENCY, lines)])


def papers(turn: int, ratio: str = "20.00") -> Result:
    lines = lines_with(
        OF_PAPERS,
        {"rows/batch": "1,000,000", "criteria": "4", "engine : C++": f"{0.8 + turn / 10:.2f}"},
        {"rows/batch": "1,000,000", "criteria": "8", "engine : C++": ratio},
    )
    return result("papers_cpp", turn, found=[Table("bench-streaming.md", "papers", OF_PAPERS, lines)])


def quoted(whole: Run) -> str:
    return text([(each, whole) for each in whole.results])


def complete(turns: int = TURNS) -> list[Result]:
    found = []
    for turn in range(1, turns + 1):
        found += [streaming(turn, 6e6 + turn * 4e5), latency(turn)]
    return found


def test_figures_are_ranges_over_the_turns():
    said = " ".join(quoted(run(*complete())).split())
    assert said == (
        "On two cores (Some CPU, 27 November 2026), a skyline of each window (1 s, every 0.2 s) of 10,000-tuple panes sustains 1.6 to 1.8 M "
        "rows/s with 4 criteria and 0.8 to 0.9 M with 8, in batches of a million rows. A pipeline that only passes the rows through Python, "
        "set up as the engine's is, sustains 1.4 to 1.6 M. At 50,000 rows/s the answer of a window can be read 0.19 to 0.21 s after the row "
        "that closes it (median; 95th percentile 0.27 s). Figures are ranges over 3 runs in turn."
    )


def test_the_cpp_is_quoted_where_it_was_run():
    said = " ".join(quoted(run(*complete(), *map(papers, (1, 2, 3)))).split())
    ratios = "0.90 to 1.1 times with 4 criteria and 20 times with 8 criteria in batches of 1,000,000 rows"
    assert f"Compared with the throughput of paper 1's C++ (two threads), skypane's is {ratios}. Figures" in said


@pytest.mark.parametrize(
    ("ratio", "quoted_as"),
    [("0.46", "0.46"), ("0.99", "0.99"), ("1.46", "1.5"), ("9.94", "9.9"), ("9.96", "10"), ("171.94", "172")],
)
def test_a_ratio_has_two_digits_and_from_ten_on_no_decimals(ratio: str, quoted_as: str):
    said = quoted(run(*complete(), *(papers(turn, ratio) for turn in (1, 2, 3))))
    assert f" and {quoted_as} times with 8 criteria in" in said


def test_two_turns_of_the_cpp_are_not_quoted_as_three():
    assert "C++" not in quoted(run(*complete(), *map(papers, (1, 2))))


@pytest.mark.parametrize("results", [complete(2), [one for one in complete() if one.name == "streaming"], []])
def test_without_three_turns_of_each_nothing_is_quoted(results):
    assert quoted(run(*results)) == ""


def test_turns_of_two_runs_are_not_mixed_and_the_newer_complete_run_counts():
    older, newer = run(*complete()), run(*complete(2), began="2026-11-28T09:00:00+00:00")
    both = [(each, whole) for whole in (older, newer) for each in whole.results]
    assert "27 November 2026" in text(both)
    full = run(*complete(), began="2026-11-29T09:00:00+00:00")
    assert "29 November 2026" in text([*both, *((each, full) for each in full.results)])


def test_a_column_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="p99"):
        cells(Table("a", "b", ["x"], [["1"]]), {"x": "1"}, "p99")
