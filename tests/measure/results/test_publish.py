"""Pages have what the newest run has measured on a quiet machine, with the day and the machine, and nothing else changes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from measure.bench.peers_aggregates import SUBJECTS as OF_AGGREGATES
from measure.results import performance
from measure.results.publish import Files, charts, texts, usable, write
from measure.results.record import Comparison, Run, Table, Times, every
from measure.tables import text_between
from tests.checkout import ROOT
from tests.measure.results.runs import COMPARISON, TABLE, result, run

NEWER = Table("page.md", "figures", ["way", "rows/s"], [["one", "2,000"]])
NEXT_DAY = "2026-11-28T09:00:00+00:00"


def of(*runs: Run) -> dict[tuple[str, str], str]:
    return texts(usable(runs))


def test_a_table_has_the_day_and_the_machine_below():
    assert of(run(result(found=[TABLE]))) == {
        ("page.md", "figures"): "| way | rows/s |\n| --- | --- |\n| one | 1,000 |\n\n"
        "*Measured on 27 November 2026: Some CPU, 2 cores; skypane 0.2.0.*"
    }


def test_the_newest_run_that_has_a_table_counts():
    older, newer = run(result(found=[TABLE])), run(result(found=[NEWER]), began=NEXT_DAY)
    other = run(result("two"), began="2026-11-29T09:00:00+00:00")
    for order in ([older, newer, other], [newer, other, older]):
        text = of(*order)["page.md", "figures"]
        assert "2,000" in text
        assert "28 November 2026" in text


def test_of_several_turns_the_first_is_shown():
    assert "1,000" in of(run(result(found=[TABLE]), result(turn=2, found=[NEWER])))["page.md", "figures"]


def test_a_further_turn_alone_which_measures_less_fills_no_table():
    disturbed = result(found=[TABLE, COMPARISON], others=0.5)
    assert of(run(disturbed, result(turn=2, found=[NEWER, COMPARISON]))) == {}


def test_results_beside_other_work_are_left_out_unless_they_are_requested():
    quiet, disturbed = run(result(found=[TABLE])), result(found=[NEWER], others=0.3)
    assert "1,000" in of(quiet, run(disturbed, began=NEXT_DAY))["page.md", "figures"]
    text = of(quiet, run(disturbed, began=NEXT_DAY, anyway=True))["page.md", "figures"]
    assert "2,000" in text
    assert text.endswith("skypane 0.2.0. Not quiet: other programs had 30% of the CPU time, more than 5%.*")


def test_quick_runs_are_never_published():
    assert usable([run(result(found=[TABLE]), quick=True, anyway=True)]) == []


def test_pages_and_charts_are_written_and_nothing_around_them_changes(tmp_path):
    page, figures = tmp_path / "page.md", tmp_path / "performance.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    figures.write_text("# Performance\n<!-- performance -->\nNo run.\n<!-- /performance -->\nend\n")
    measured = usable([run(result(found=[TABLE, COMPARISON]))])
    files = Files(tmp_path, tmp_path / "README.md")
    assert {file.name for file in write(measured, files)} == {
        "page.md", "performance.md", "performance-merge-of-inputs.svg",
    }  # fmt: skip
    assert page.read_text().startswith("before\n<!-- figures -->\n| way |")
    assert page.read_text().endswith("*\n<!-- /figures -->\nafter\n")
    assert "![Rows per second. 20 inputs: PriorityQueue" in figures.read_text()
    assert write(measured, files) == []


def test_a_page_without_the_mark_is_refused_before_any_is_written(tmp_path):
    (tmp_path / "page.md").write_text("<!-- figures -->\nold\n<!-- /figures -->\n")
    (tmp_path / "other.md").write_text("no marks\n")
    there = replace(TABLE, page="other.md")
    with pytest.raises(ValueError, match=r"other.md lacks the marks <!-- figures -->"):
        write(usable([run(result(found=[TABLE, there]))]), Files(tmp_path, tmp_path / "README.md"))
    assert "old" in (tmp_path / "page.md").read_text()


def test_a_section_states_who_is_faster_and_who_is_slower():
    text = of(run(result(found=[COMPARISON])))["performance.md", "performance"]
    assert "## Merging sorted inputs" in text
    verdict = "- 20 inputs: faster than columnar merge: PriorityQueue (4.0 times); slower: heapq.merge (5.0 times)."
    assert verdict in text
    assert "| 20 inputs | PriorityQueue | 10.0 M | 10.0 M to 10.0 M | 0.10 | - | 4.00 |" in text
    assert "| 20 inputs | columnar merge | 2.50 M | 2.00 M to 4.00 M | 0.40 | 0.50 | 1 |" in text
    assert "Not measured in this run: T-Gate (nobody built it)." in text
    assert "*Measured on 27 November 2026: Some CPU, 2 cores; skypane 0.2.0; PySpark 4.3.0.*" in text


def test_what_some_cases_lack_is_reported_for_them_only():
    some = replace(
        COMPARISON, case="9 inputs", missing={"T-Gate": "nobody built it", "heapq.merge": "it took too long"}
    )
    assert performance.missing([COMPARISON, some]) == [
        "Not measured in this run: T-Gate (nobody built it); heapq.merge with 9 inputs (it took too long)."
    ]
    assert performance.missing([replace(COMPARISON, missing={})]) == []


def test_the_other_sizes_of_ours_do_not_compete():
    sides = {"skypane, large": [Times(1.0)], "skypane, small": [Times(2.0)], "WindFlow": [Times(4.0)]}
    case = Comparison("skylines by group", "4 criteria", 100, "skypane, large", sides)
    assert performance.verdict(case) == "4 criteria: slower: WindFlow (4.0 times)."
    alone = replace(case, sides={"skypane, large": [Times(1.0)]})
    assert performance.verdict(alone) == "4 criteria: nothing else was measured."


def test_a_subject_is_shown_from_its_newest_run_with_its_own_stamp():
    other = replace(COMPARISON, subject="skyline of a table")
    older, newer = run(result(found=[COMPARISON, other])), run(result(found=[other]), began=NEXT_DAY)
    text = of(older, newer)["performance.md", "performance"]
    table, merge = text.split("## Merging sorted inputs")
    assert "28 November" in table
    assert "27 November" in merge
    assert set(charts(usable([older, newer]))) == {
        "performance-merge-of-inputs.svg", "performance-skyline-of-a-table.svg",
    }  # fmt: skip


def unnamed(svg: str) -> str:
    """Return a chart without the names of its frames, which follow from the last bits of their sizes: CPUs differ in these."""
    return re.sub(r"\bp[0-9a-f]{10}\b", "frame", svg)


def test_the_pages_have_the_figures_of_the_runs_of_this_checkout():
    """`make bench ARGS=--publish` writes them."""
    measured = usable(every(ROOT / "measure" / "runs").values())
    files = Files(ROOT / "docs", ROOT / "README.md")
    for (page, mark), text in texts(measured).items():
        assert text_between(files.of(page), mark) == f"{text}\n", f"{page}, {mark}"
    for name, svg in charts(measured).items():
        assert unnamed((ROOT / "docs" / name).read_text(encoding="utf-8")) == unnamed(svg), name


def test_no_chart_is_left_of_which_no_run_has_a_comparison():
    measured = usable(every(ROOT / "measure" / "runs").values())
    assert {file.name for file in (ROOT / "docs").glob("performance-*.svg")} == set(charts(measured))


def test_every_subject_of_a_benchmark_has_a_section():
    """One without a section would be measured and not shown."""
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "measure" / "bench").glob("*.py"))
    named = {found for source in sources for found in re.findall(r'\b(?:Comparison|compared)\(\s*"([^"]+)"', source)}
    assert {*named, *OF_AGGREGATES.values()} == performance.SUBJECTS.keys()
