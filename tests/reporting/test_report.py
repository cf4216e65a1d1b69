"""The report: every figure is there, nothing is loaded from elsewhere, what a user wrote is escaped."""

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.reporting.made import HOUR, batch, hourly

from skypane.policy import Decision
from skypane.reporting import plots
from skypane.reporting.report import lines, render
from skypane.reporting.snapshot import Criterion, Example, Snapshot, answers, example, front_sizes, latest_front
from skypane.reporting.summary import running_seconds, summarise

TIME = pa.timestamp("us", tz="UTC")


def windows(count=6):
    """Windows [i - 1, i) in hours; the one that ends at hour i has i rows for a, and one for b."""
    rows = [(i, city, price) for i in range(1, count) for city, n in (("a", i), ("b", 1)) for price in range(n)]
    ends, cities, prices = map(list, zip(*rows, strict=True))
    return pa.table(
        {
            "window_start": pa.array([(e - 1) * HOUR for e in ends]).cast(TIME),
            "window_end": pa.array([e * HOUR for e in ends]).cast(TIME),
            "city": cities,
            "price": prices,
            "rating": [10 - p for p in prices],
        }
    )


def snapshot(**changed):
    known: dict[str, Any] = {
        "title": "Offers <& co>",
        "question": "Which are the best?",
        "window": HOUR,
        "criteria": (Criterion("price", "low", "EUR"), Criterion("rating", "high")),
        "batches": hourly(8),
        "settings": (("progress", "AqKSlack"),),
        "sizes": front_sizes(windows(), ["city"]),
        "example": example(windows(), ["city"]),
        "notes": ("One remark.",),
    }
    return Snapshot(**known | changed)


class Page(HTMLParser):
    """Collects headings, links, and whether tags are balanced."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.links: list[str | None] = []
        self.tags: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"href", "src", "xlink:href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.mark.long
def test_all_cards_are_there():
    page = Page(render(snapshot()))
    assert page.headings == [
        "An example front",
        "Size of the answer over time",
        "Late rows against the drop budget, and the slack",
        "Window latency",
        "Rate",
        "Where a batch's time goes",
        "Decisions and outcomes",
        "Settings",
        "Worth knowing",
    ]
    assert page.tags.count("svg") == 6


def test_it_is_self_contained():
    text = render(snapshot())
    page = Page(text)
    assert "script" not in page.tags
    assert all(link is not None and link.startswith("#") for link in page.links)  # markers and clips inside a figure
    assert not re.search(r"url\((?!#)|@import", text)


def test_colours_are_the_pages():
    assert not re.search(r"#0102|#0103|#0104", render(snapshot()))


@pytest.mark.long
def test_text_is_escaped():
    text = render(snapshot(title="<script>alert(1)</script>", question="a & b", settings=(("<b>", '"x"'),)))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "a &amp; b" in text


@pytest.mark.long
def test_equal_runs_give_equal_pages():
    assert render(snapshot()) == render(snapshot())


def test_a_bare_run_has_a_page_too():
    text = render(snapshot(batches=(batch(rows=5),), sizes=None, example=None, criteria=(), settings=(), notes=()))
    assert Page(text).headings == ["Where a batch's time goes", "Decisions and outcomes", "Settings"]


def test_a_run_without_batches_has_its_settings_and_remarks():
    """It may have an answer of an earlier run."""
    nothing = snapshot(batches=(), notes=("The run has ended with an error: a & b.",))
    text = render(nothing)
    assert Page(text).headings == ["Settings", "Worth knowing"]
    assert '<p class="when">no micro-batch was finished: there were no new rows' in text
    assert "The run has ended with an error: a &amp; b." in text
    assert len(lines(nothing)) == 1


def test_a_replay_reports_its_own_time():
    assert "replayed 3,600 times faster" in render(snapshot(speedup=3600.0))


@pytest.mark.long
def test_over_budget_is_marked():
    over = (*hourly(2), batch(batch_id=2, seen_rows=100, dropped_rows=2, drop_budget=0.01))
    assert '<div class="tile bad">' in render(snapshot(batches=over))
    assert '<div class="tile bad">' not in render(snapshot())


def test_summary_adds_up_and_leaves_pauses_out():
    first, second = hourly(2), [batch(batch_id=2, rows=50, started_at=2_000_000.0, quarantined={"null price": 3})]
    summary = summarise(snapshot(batches=(*first, *second)))
    assert (summary.rows, summary.windows, summary.quarantined) == (250, 2, {"null price": 3})
    assert running_seconds((*first, *second)) == pytest.approx(1.5 + 1.0)
    assert lines(snapshot())[0] == "800 rows in 7.5 s: 107 rows/s in 8 micro-batches"


def test_sizes_by_window_and_group():
    sizes = front_sizes(windows(), ["city"])
    assert sorted(zip((sizes.end // HOUR).tolist(), sizes.group, sizes.row_counts.tolist(), strict=True)) == sorted(
        [(i, "a", i) for i in range(1, 6)] + [(i, "b", 1) for i in range(1, 6)]
    )
    assert front_sizes(windows(), []).row_counts.tolist() == [2, 3, 4, 5, 6]


def test_the_example_is_the_largest_answer_with_all_rows_of_its_window():
    times = pa.array(np.arange(0, 6 * HOUR, HOUR // 2)).cast(TIME)
    everything = pa.table({"ts": times, "city": ["a", "b"] * 6, "price": range(12), "rating": range(12)})
    chosen = example(windows(), ["city"], everything, "ts")
    assert isinstance(chosen, Example)
    assert (chosen.start, chosen.end, chosen.group, chosen.front.num_rows) == (4 * HOUR, 5 * HOUR, "a", 5)
    assert chosen.everything is not None
    assert chosen.everything.column("price").to_pylist() == [8]  # 4:00 of a; 4:30 is of b
    assert example(windows().slice(0, 0), ["city"]) is None


def test_answers_are_read_without_what_is_being_written(tmp_path):
    assert answers(tmp_path) is None
    (tmp_path / "_staging").mkdir()
    pa.parquet.write_table(windows(), tmp_path / "part-000000000003-00000.parquet")
    pa.parquet.write_table(windows(), tmp_path / "_staging" / "half.parquet")
    found = answers(tmp_path)
    assert found is not None
    assert found.equals(windows())
    answered = batch(batch_id=3, latest_window={"start": 4 * HOUR, "end": 5 * HOUR, "rows": 6})
    front = latest_front(tmp_path, answered)
    assert front is not None
    assert front.num_rows == 6
    assert latest_front(tmp_path, batch(batch_id=4)) is None


@pytest.mark.long
def test_a_report_of_elastic_workers_draws_them_and_shows_the_last_decision():
    decided = Decision("workers", {"plq": 3, "wlq": 2}, "PLQ slow 0.80 -> PLQ 2 -> 3")
    batches = [
        batch(batch_id=number, workers={"plq": 2 + number, "wlq": 2}, rho=1.2, rho_wlq=None, started_at=1e6 + number)
        for number in range(3)
    ]
    assert "Workers over time" not in render(snapshot(batches=tuple(batches)))
    page = render(snapshot(batches=(*batches[:2], replace(batches[2], decisions=(decided,)))))
    assert "Workers over time" in page
    assert "The last decision: PLQ slow 0.80 -&gt; PLQ 2 -&gt; 3." in page


def drain(**changed: Any):
    """The report of a drain: no row is read, so there is no pane level; two windows are answered."""
    seconds = {"total": 0.3, "wlq": 0.2, "sink": 0.1}
    return batch(batch_id=8, plq_workers=0, wlq_workers=1, windows=2, decisions=(), seconds=seconds, **changed)


def test_a_drain_leaves_the_pane_level_in_the_report():
    lifted = [replace(metrics, plq_workers=3, seconds={"total": 0.5, "plq": 0.4, "wlq": 0.1}) for metrics in hourly(8)]
    ended = replace(drain(), started_at=lifted[-1].started_at + 1)
    page = render(snapshot(batches=(*lifted, ended)))
    assert "3 for panes (PLQ), 1 for windows (WLQ)" in page
    before, after = (steps(plots.stages(batches)) for batches in (lifted, (*lifted, ended)))
    assert before == ["panes (PLQ)", "windows (WLQ)"]
    assert after == [*before, "sink"]


def steps(svg: str) -> list[str]:
    """The labels of the bars, from the top; beside them stand their milliseconds."""
    return [text for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg) if not text.endswith(" ms")]


def test_the_reasons_are_those_of_the_last_batch_that_has_them():
    read = [replace(one, decisions=(Decision("exchange", "read", "rows are even"),)) for one in hourly(3)]
    page = render(snapshot(batches=(*read, drain())))
    assert "rows are even" in page


def test_the_latency_of_answers_is_that_of_all_batches_of_the_run_and_of_each_query():
    """19 answers took a second, one of each query 8 seconds; a drain has answers without a latency."""
    judged = Decision("latency", "missed", "answers took 8 s (p95) for the promised 5 s", {"promised": 5.0})
    quick, slow = (batch(windows=n, answers=n, latency=took) for n, took in ((18, 1.0), (2, 8.0)))
    one = snapshot(title="best", batches=(replace(quick, answers=9), replace(slow, answers=1)))
    run = (quick, slow, batch(windows=5, answers=5, decisions=(judged,)))
    page = render(snapshot(batches=run, queries=(one, replace(one, title="none", batches=run[2:]))))
    assert summarise(snapshot(batches=run)).latencies.answers == 20
    assert "<tr><th>latency of answers</th><td>1 s (p50), 8 s (p95), 8 s (p99), 8 s (longest)</td></tr>" in page
    assert "<th>latency of answers (best)</th>" in page
    assert "latency of answers (none)" not in page
    assert f"<td>missed: {judged.because}</td>" in page
    assert '<div class="tile bad"><span>latency of an answer after its last row</span><b>8 s</b>' in page


def test_one_window_and_one_row_are_in_the_singular():
    alone = batch(rows=1, windows=1, window_rows=1, quarantined={"null price": 1}, dropped_rows=0)
    answered = lines(snapshot(batches=(alone,)))
    assert answered[0].startswith("1 row in ")
    assert answered[0].endswith("in 1 micro-batch")
    assert answered[1] == "1 window answered with 1 row"
    assert "1 row quarantined: null price" in answered
    assert str(alone) == "batch 0 (1.00 s): 1 row, 1 row quarantined, 1 window answered, 1 result row"


@pytest.mark.parametrize(
    ("rows", "late", "line"),
    [
        (7, 1, "14.29 % of the rows were late of 1 % allowed (1 dropped; 1 % of 7 rows is less than one)"),
        (100, 2, "2 % of the rows were late of 1 % allowed (2 dropped)"),
        (7, 0, "0 % of the rows were late of 1 % allowed (0 dropped)"),
    ],
)
def test_a_budget_of_less_than_one_row_is_explained(rows: int, late: int, line: str):
    few = batch(rows=rows, seen_rows=rows, dropped_rows=late, drop_budget=0.01)
    assert line in lines(snapshot(batches=(few,)))


def test_rows_that_no_answer_has_yet_are_in_the_last_line_with_the_option_that_answers_them():
    still = batch(rows=3, open_panes=1, open_rows=2)
    assert lines(snapshot(batches=(still,)))[-1] == (
        "2 rows in windows that are still open: more may come, or --drain answers them"
    )
    assert not any("still open" in line for line in lines(snapshot(batches=(still, drain()))))


@pytest.mark.long
@pytest.mark.parametrize("name", ["$\\frac{1}$", "$x$", "price $ and $ rating", "a^b_c", "\\", "%s{0}", "<b>"])
def test_a_group_or_column_may_have_any_name(name: str):
    """In particular one that looks like a formula."""
    table = pa.table({
        "window_start": pa.array([0, 0, HOUR], pa.timestamp("us", "UTC")),
        "window_end": pa.array([HOUR, HOUR, 2 * HOUR], pa.timestamp("us", "UTC")),
        "city": [name, "b", name],
        name: [1.0, 2.0, 3.0],
        "rating": [3.0, 2.0, 1.0],
    })  # fmt: skip
    page = render(
        snapshot(
            title=name,
            question=name,
            criteria=(Criterion(name, "low", name), Criterion("rating", "high")),
            batches=hourly(3),
            settings=((name, name),),
            sizes=front_sizes(table, ["city"]),
            example=example(table, ["city"]),
        )
    )
    assert escape(name, quote=False) in page
