"""README quotes ranges over three turns of one run, with the identity that measures as little as the engine."""

from __future__ import annotations

import pytest
from measure.results.record import Result, Run, Table
from measure.results.speed import TURNS, cells, text
from tests.measure.results.runs import result, run

STREAMING = ["rows/batch", "criteria", "identity, rows/s", "unmeasured, rows/s", "engine, rows/s"]
LATENCY = ["rows/s", "criteria", "windows", "p50, ms", "p95, ms"]


def streaming(turn: int, engine: float) -> Result:
    lines = [["1,000,000", d, "900,000", f"{1.3e6 + turn * 1e5:,.0f}", f"{engine / int(d):,.0f}"] for d in ("4", "8")]
    lines.append(["100,000", "4", "1", "1", "1"])
    return result("streaming", turn, found=[Table("bench-streaming.md", "streaming", STREAMING, lines)])


def latency(turn: int) -> Result:
    lines = [["50,000", "4", "300", f"{180 + 10 * turn}", "270"], ["1,000", "4", "300", "1", "2"]]
    return result("latency", turn, found=[Table("bench-streaming.md", "latency", LATENCY, lines)])


def papers(turn: int) -> Result:
    head = ["rows/batch", "criteria", "engine : C++"]
    lines = [["1,000,000", "4", f"{0.8 + turn / 10:.2f}"], ["1,000,000", "8", "20.00"]]
    return result("papers_cpp", turn, found=[Table("bench-streaming.md", "papers", head, lines)])


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
    ratios = (
        "0.90 to 1.10 with 4 criteria and 1,000,000 rows a batch, 20.00 with 8 criteria and 1,000,000 rows a batch."
    )
    assert f"Its throughput is that of paper 1's C++ (two threads) times {ratios} Figures" in said


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
