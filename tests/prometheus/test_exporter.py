"""Batches as Prometheus reads them: what is added up, what is kept, and that a scrape sees whole batches."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.prometheus.made import SLOW, batches, full, of_two_queries
from tests.prometheus.scraped import exposed, families, text_of, total, value, values
from tests.reporting.made import HOUR, batch

from skypane.metrics import BatchMetrics, InputMetrics, QueryMetrics
from skypane.monitoring import measures
from skypane.monitoring.measures import OF_QUERIES, OF_STREAMS, RUNNING, Measure
from skypane.monitoring.series import MOST, OTHER
from skypane.prometheus.exporter import Exporter

MEASURES: tuple[Measure[Any], ...] = (RUNNING, *OF_STREAMS, *OF_QUERIES)


@given(st.lists(batches(), min_size=1, max_size=8))
def test_counters_and_histograms_are_the_sums_of_the_batches_and_gauges_the_last(given: list[BatchMetrics]):
    text = exposed(*given)
    assert total(text, "skypane_batches_total") == len(given)
    for field in ("rows", "windows", "late_rows"):
        assert total(text, f"skypane_{field}_total") == sum(getattr(one, field) for one in given)
    late, bad = Counter[str](), Counter[str]()
    for one in given:
        late.update(one.late_by_source)
        bad.update(one.quarantined)
    for name, number in late.items():
        assert value(text, "skypane_late_rows_total", stream="s", query="", source=name) == number
    for name, number in bad.items():
        assert value(text, "skypane_quarantined_rows_total", stream="s", query="", reason=name) == number
    assert value(text, "skypane_open_panes", stream="s", query="") == given[-1].open_panes
    took = [one.seconds["total"] for one in given]
    assert value(text, "skypane_batch_duration_seconds_count", stream="s") == len(given)
    assert value(text, "skypane_batch_duration_seconds_sum", stream="s") == pytest.approx(sum(took))
    assert value(text, "skypane_batch_duration_seconds_bucket", stream="s", le="1.0") == sum(one <= 1 for one in took)
    waited = [one.latency for one in given if one.latency is not None for _ in range(one.answers)]
    assert total(text, "skypane_answer_latency_seconds_count") == len(waited)
    assert total(text, "skypane_answer_latency_seconds_sum") == pytest.approx(sum(waited))
    assert total(text, "skypane_answer_latency_seconds_bucket", le="1.0") == sum(one <= 1 for one in waited)
    for step in ("plq", "sink"):
        took = [one.seconds[step] for one in given]
        assert value(text, "skypane_batch_step_duration_seconds_sum", stream="s", step=step) == pytest.approx(sum(took))
    assert total(text, "skypane_decisions_total", decision="placement") == len(given)


def test_all_fields_of_a_batch_are_exposed_in_base_units():
    text = exposed(full())
    shown = {
        name: one
        for (name, labels), one in values(text).items()
        if dict(labels) in ({"stream": "s"}, {"stream": "s", "query": ""})
    }
    assert shown["skypane_punctuation_timestamp_seconds"] == 3600
    assert shown["skypane_newest_timestamp_seconds"] == 7200
    assert shown["skypane_slack_seconds"] == 3600
    assert shown["skypane_answered_timestamp_seconds"] == 3600
    assert shown["skypane_last_batch_timestamp_seconds"] == 1_000_001
    assert shown["skypane_drop_ratio"] == 0.01
    assert shown["skypane_unavoidable_drop_ratio"] == 0.0025
    assert (shown["skypane_drop_budget_ratio"], shown["skypane_amend_budget_ratio"]) == (0.05, 0.1)
    assert shown["skypane_amended_ratio"] == 0.075
    assert shown["skypane_state_bytes"] == 7_000
    assert (shown["skypane_input_lag_rows"], shown["skypane_input_waiting_seconds"]) == (13, 3.5)
    assert (shown["skypane_executors"], shown["skypane_front_rows"], shown["skypane_held_rows"]) == (4, 11, 6)
    assert (shown["skypane_early_windows_total"], shown["skypane_amended_windows_total"]) == (4, 2)
    assert value(text, "skypane_late_rows_total", stream="s", query="", source="") == 1, "of no source"
    assert value(text, "skypane_workers", stream="s", level="wlq") == 3
    assert value(text, "skypane_utilization_ratio", stream="s", level="plq") == 0.5
    assert math.isnan(value(text, "skypane_utilization_ratio", stream="s", level="wlq"))
    assert value(text, "skypane_front_updates_total", stream="s", update="del") == 7
    states = {
        state: value(text, "skypane_inputs", stream="s", state=state) for state in ("read", "silent", "behind", "gone")
    }
    assert states == {"read": 0, "silent": 0, "behind": 2, "gone": 1}
    assert value(text, "skypane_decisions_total", stream="s", decision="lift", value="driver") == 1
    assert shown["skypane_promised_latency_seconds"] == 5
    assert (shown["skypane_answer_latency_seconds_sum"], shown["skypane_answer_latency_seconds_count"]) == (8, 2)


def test_the_end_of_the_last_answered_window_stays_through_batches_that_answer_none():
    text = exposed(full(), batch(windows=0, latest_window=None))
    assert value(text, "skypane_answered_timestamp_seconds", stream="s", query="") == 3600


def lagging(**lags: tuple[int, float | None]) -> BatchMetrics:
    """Return a batch with inputs of these lags, in rows and in seconds of event time."""
    inputs = [
        InputMetrics(name, 0, None, None, lag, 0, "behind" if lag else "read", waiting=waiting)
        for name, (lag, waiting) in lags.items()
    ]
    return batch(inputs=tuple(inputs))


def test_the_longest_wait_of_inputs_is_unknown_only_if_none_of_those_that_lag_states_it():
    name = "skypane_input_waiting_seconds"
    assert value(exposed(lagging(a=(3, 2.0), b=(9, None), c=(0, None))), name, stream="s") == 2
    assert value(exposed(lagging(a=(0, None), b=(0, None))), name, stream="s") == 0
    assert math.isnan(value(exposed(lagging(a=(3, None), b=(0, None))), name, stream="s"))
    assert (name, (("stream", "s"),)) not in values(exposed(batch())), "a stream without sp.inputs"


def test_each_of_several_queries_has_its_own_and_the_stream_has_the_rows_once():
    text = exposed(of_two_queries())
    assert value(text, "skypane_rows_total", stream="s") == 100
    assert value(text, "skypane_windows_total", stream="s", query="best") == 2
    assert value(text, "skypane_windows_total", stream="s", query="load") == 7
    assert total(text, "skypane_late_rows_total", query="best") == 3
    assert total(text, "skypane_late_rows_total") == 8
    assert value(text, "skypane_punctuation_timestamp_seconds", stream="s", query="load") == 3 * HOUR / 1e6


def test_each_stream_has_its_own_series():
    exporter = Exporter()
    exporter.streams.add("one", batch(rows=3))
    exporter.streams.add("other", batch(rows=4))
    text = text_of(exporter)
    assert value(text, "skypane_rows_total", stream="one") == 3
    assert value(text, "skypane_rows_total", stream="other") == 4


def test_more_sources_than_prometheus_should_keep_are_counted_together():
    """Each batch has sources that none before it had."""
    late = [{f"{number}-{one}": 2 for one in range(MOST)} for number in range(3)]
    batches = [batch(late_by_source=each, late_rows=sum(each.values())) for each in (*late, {"0-0": 5})]
    text = exposed(*batches)
    sources = [dict(labels)["source"] for name, labels in values(text) if name == "skypane_late_rows_total"]
    assert len(sources) == MOST + 1
    assert total(text, "skypane_late_rows_total") == 6 * MOST + 5
    assert total(text, "skypane_late_rows_total", source="0-0") == 7, "a source that has its series keeps it"
    assert total(text, "skypane_late_rows_total", source=OTHER) == 6 * MOST - 2 * (MOST - 1)


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\b", "Zürich", '{x="y"}', ""])
def test_a_source_may_have_any_name(name: str):
    text = exposed(batch(late_by_source={name: 2}, late_rows=2), stream=f"stream {name}")
    assert value(text, "skypane_late_rows_total", stream=f"stream {name}", query="", source=name) == 2


def test_a_scrape_shows_whole_batches():
    """Rows and windows are counted one after the other; a scrape of half a batch would have different numbers."""
    exporter = Exporter()
    exporter.streams.add("s", batch(rows=1, windows=1))

    def count() -> None:
        for _ in range(2_000):
            exporter.streams.add("s", batch(rows=1, windows=1))

    counting = Thread(target=count)
    counting.start()
    scrapes = 0
    while counting.is_alive() or not scrapes:
        text = text_of(exporter)
        rows = value(text, "skypane_rows_total", stream="s")
        assert rows == value(text, "skypane_windows_total", stream="s", query="")
        scrapes += 1
    counting.join()
    assert value(text_of(exporter), "skypane_rows_total", stream="s") == 2_001


def test_a_cause_is_there_while_it_lasts_in_the_words_of_its_line_and_without_rows():
    exporter = Exporter()
    exporter.streams.add("s", full())
    text = text_of(exporter)
    words = {"of": "", "what": SLOW.what, "since": SLOW.begun, "why": SLOW.why, "remedy": SLOW.remedy}
    assert value(text, "skypane_cause", stream="s", cause=SLOW.name, **words) == SLOW.number
    for word in (SLOW.what, SLOW.begun, SLOW.why, SLOW.remedy):
        assert word in SLOW.line
    assert SLOW.examples[0] not in text
    exporter.streams.add("s", batch(rows=1))
    assert "skypane_cause{" not in text_of(exporter)


SUFFIXES = {
    "s": "_seconds", "s of event time": "_seconds", "time in s": "_timestamp_seconds", "event time in s": "_timestamp_seconds",
    "bytes": "_bytes", "ratio": "_ratio",
}  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_names_follow_the_conventions(measure: Measure[Any]):
    """Prometheus': a prefix, base units as a suffix, `_total` for counters alone, no label in a name."""
    assert re.fullmatch(r"skypane_[a-z]+(_[a-z]+)*", measure.name)
    assert measure.name.endswith("_total") == (measure.kind == "counter")
    assert measure.name.endswith(SUFFIXES.get(measure.unit, ""))
    assert not measure.name.endswith(("_count", "_sum", "_bucket", "_info", "_created"))
    assert not set(measure.labels) & {"job", "instance", "le", "quantile", "stream", "query"}


def test_each_measure_is_exposed_with_its_meaning_and_nothing_else_is():
    found = {family.name: family for family in families(exposed(full()))}
    for measure in MEASURES:
        family = found.pop(measure.name.removesuffix("_total"))
        assert (family.documentation, family.type) == (measure.meaning, measure.kind)
        assert family.samples or measure is RUNNING
    assert not found


NOT_EXPOSED = {
    "batch_id": "a number, not a measure",
    "busy": "a value for each task; the utilisation is computed from them",
    "wlq_busy": "a value for each run of windows; likewise",
    "task_rows": "a value for each task; rows has their sum",
    "plq_workers": "workers has those that it may use",
    "wlq_workers": "likewise",
    "latencies": "answer_latency adds up the same latencies, from the start of the process on",
    "sigma": "explains the splitting policy's decision, in its figures",
    **dict.fromkeys(
        ("rows_by_source", "delays", "clocks", "held_ahead", "max_slack", "trigger", "disk"),
        "causes are decided by it, and have it in their words",
    ),
}


def test_a_field_of_a_batch_is_exposed_or_left_out_for_a_reason():
    """By the text of the table: each field is read by some measure."""
    text = Path(inspect.getsourcefile(measures) or "").read_text(encoding="utf-8")
    read = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    of_batches = {field.name for field in fields(BatchMetrics)} | {field.name for field in fields(QueryMetrics)}
    assert of_batches - read - {"decisions"} == NOT_EXPOSED.keys()
    assert not NOT_EXPOSED.keys() & read
