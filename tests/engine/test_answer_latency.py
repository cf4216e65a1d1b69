"""The latency of answers, held to what is seen from outside: times before the rows, in the sink, and after the commit."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.jobs import drain_without_commit
from tests.reporting.made import batch

import skypane as sp
from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.forecasting_policy import ModelPolicy
from skypane.control.latency import Latencies
from skypane.metrics import QueryMetrics
from skypane.runtime.spark.engine.answer_latency import AnswerLatency
from skypane.testing import Session

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "price": pa.float64()})


def rows_of(*seconds: int) -> pa.Table:
    """Return a row for each second of event time."""
    times = pa.array([second * 1_000_000 for second in seconds], SCHEMA.field("ts").type)
    return pa.table({"ts": times, "price": pa.array([1.0] * len(seconds))}, SCHEMA)


class Timed:
    """A sink that notes when each batch came to it, and can fail."""

    def __init__(self) -> None:
        self.entered: dict[int, float] = {}
        self.fails = False

    def __call__(self, _: Any, number: int) -> None:
        self.entered[number] = time.time()
        if self.fails:
            raise OSError("no space left")


def job_of(arriving: list[pa.Table], folder: Path, output: Any, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"time": "ts", "window": "2 seconds", "progress": sp.Watermark("0 seconds")}
    rows = Session().stream(arriving, SCHEMA)
    return sp.stream(rows, "price MIN", checkpoint=folder / "state", output=output, **own | options)


def test_it_lies_between_what_a_sink_and_a_reader_see(tmp_path: Path):
    arriving: list[pa.Table] = []
    sink = Timed()
    handle = job_of(arriving, tmp_path, sink).start()
    before, after = [], []
    for number in range(6):
        before.append(time.time())
        arriving.append(rows_of(*range(4 * number, 4 * number + 4)))
        handle.query.processAllAvailable()
        after.append(time.time())
    handle.stop()
    seen = handle.recent_metrics()
    assert [metrics.answers for metrics in seen] == [metrics.windows for metrics in seen] == [1, 2, 2, 2, 2, 2]
    for metrics, came, committed in zip(seen, before, after, strict=True):
        assert metrics.latency is not None
        assert sink.entered[metrics.batch_id] - metrics.started_at <= metrics.latency <= committed - came + 0.002
    assert seen[-1].latencies.answers == 11
    assert seen[-1].latencies.longest == max(metrics.latency or 0 for metrics in seen)


def test_a_batch_that_comes_again_has_waited_since_its_first_try(tmp_path: Path):
    sink = Timed()
    sink.fails = True
    job = job_of([rows_of(*range(9))], tmp_path, sink)
    handle = job.start()
    with pytest.raises(sp.SkypaneError):
        handle.await_termination(60)
    failed = sink.entered[0]
    sink.fails = False
    again = job.start(trigger="available now")
    assert again.await_termination(60)
    (metrics,) = again.recent_metrics()
    assert metrics.latency is not None
    assert metrics.latency >= sink.entered[0] - failed
    assert metrics.latency > metrics.seconds["total"] + (metrics.started_at - failed)


def test_latencies_are_added_up_over_restarts_without_drains_amended_and_early_answers(tmp_path: Path):
    arriving = [rows_of(*range(9))]
    job = job_of(
        arriving,
        tmp_path,
        tmp_path / "out",
        early="1 second",
        late=sp.Amend("10 seconds"),
        progress=sp.Watermark("0 seconds"),
    )
    seen: list[sp.BatchMetrics] = []
    for more in ([], [rows_of(5, *range(9, 14))], [rows_of(6)]):
        arriving += more
        assert job.start(trigger="available now", on_batch=seen.append).await_termination(60)
    assert [(metrics.windows, metrics.latency is None) for metrics in seen] == [(4, False), (2, False), (0, True)]
    assert seen[1].early_windows
    assert seen[2].amended is not None
    assert seen[2].amended["windows"] == 1
    drained = job.start().drain()
    assert drained is not None
    assert (drained.windows, drained.latency) == (1, None)
    whole = Latencies()
    for metrics in seen[:2]:
        assert metrics.latency is not None
        whole = whole.merge(Latencies.of(metrics.latency, metrics.windows))
    assert drained.latencies == seen[2].latencies == whole


def test_a_drain_that_was_not_committed_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = job_of([rows_of(*range(9))], tmp_path, tmp_path / "out")
    handle = job.start()
    handle.query.processAllAvailable()
    handle.stop()
    before = handle.recent_metrics()[-1].latencies
    drain_without_commit(handle, monkeypatch)
    assert job.start(trigger="available now").recent_metrics()[-1].latencies == before


def test_each_of_several_queries_has_its_own(tmp_path: Path):
    arriving = [rows_of(0, 1), rows_of(2, 3), rows_of(4, 5)]
    queries = {"best": sp.Skyline("price MIN"), "load": sp.Aggregate(n=sp.count())}
    windows = {"best": "2 seconds", "load": "4 seconds"}
    rows = Session().stream(arriving, SCHEMA)
    job = sp.streams(
        rows,
        queries,
        time="ts",
        window=windows,
        progress=sp.Watermark("0 seconds"),
        checkpoint=tmp_path / "state",
        output=tmp_path / "out",
    )
    handle = job.start(trigger="available now")
    assert handle.await_termination(60)
    seen = handle.recent_metrics()
    counts = {name: [metrics.queries[name].windows for metrics in seen] for name in queries}
    assert counts["best"] != counts["load"]
    for metrics in seen:
        each = metrics.queries.values()
        assert metrics.answers == sum(one.windows for one in each) == metrics.windows
        assert {one.latency for one in each if one.windows} <= {metrics.latency}
        assert all(one.latency is None for one in each if not one.windows)
    last = seen[-1]
    assert {name: last.of(name).latencies.answers for name in queries} == {name: sum(of) for name, of in counts.items()}
    both = last.queries["best"].latencies.merge(last.queries["load"].latencies)
    assert last.latencies == both


def test_a_continuous_skyline_counts_panes_whose_rows_reach_its_front(tmp_path: Path):
    rows = Session().stream([rows_of(0, 1, 1, 3), rows_of(3, 4, 6)], SCHEMA)
    job = sp.continuous_skyline(
        rows, "price MIN", time="ts", window="4 seconds", every="1 second", progress=sp.Watermark("0 seconds"), checkpoint=tmp_path / "state",
        output=tmp_path / "out",
    )  # fmt: skip
    handle = job.start(trigger="available now")
    assert handle.await_termination(60)
    seen = handle.recent_metrics()
    assert [(metrics.windows, metrics.answers) for metrics in seen] == [(0, 2), (0, 2)]
    assert all(metrics.latency is not None for metrics in seen)
    assert seen[-1].latencies.answers == 4


def missed_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and "promised" in record.getMessage()
    ]


@pytest.mark.parametrize(("bound", "missed"), [("1 microsecond", True), ("1 hour", False)])
def test_a_bound_that_is_missed_is_logged_once(
    bound: str, missed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    workers = sp.WorkerOptions(elastic=sp.Model(latency=bound))
    arriving = [rows_of(*range(4 * number, 4 * number + 4)) for number in range(5)]
    handle = job_of(arriving, tmp_path, tmp_path / "out", workers=workers).start(trigger="available now")
    assert handle.await_termination(60)
    last = handle.recent_metrics()[-1]
    judged = last.decision("latency")
    assert judged is not None
    assert judged.value == ("missed" if missed else "kept")
    assert judged.figures["p95"] >= (last.latencies.p50 or 0) / 1.1
    lines = missed_lines(caplog)
    assert len(lines) == missed
    if missed:
        first = handle.recent_metrics()[0].decision("latency")
        assert first is not None
        assert lines == [f"{first.because}; checkpoint {tmp_path / 'state'}"]
        assert "(p95) for the promised 1 us since " in lines[0]


def test_a_bound_that_is_kept_and_missed_again_is_logged_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Batches of these seconds, of an engine whose Spark has recorded nothing."""
    elastic = Elastic(ModelPolicy(latency="5 seconds"), max_workers=4)
    measured = AnswerLatency(str(tmp_path), elastic, {})
    with caplog.at_level(logging.INFO, "skypane"):
        for took in [9.0, 9.0, *[1.0] * 60, 9.0, 9.0, 9.0]:
            metrics = batch(windows=1, answers=1, seconds={"total": took}, queries={})
            measured.committed(measured.measured(metrics, 0))
    lines = [(record.levelname, record.getMessage().split(" since ")[0]) for record in caplog.records]
    assert lines == [
        ("WARNING", "answers took 9 s (p95) for the promised 5 s"),
        ("INFO", "answers took 1 s (p95) for the promised 5 s"),
        ("WARNING", "answers took 9 s (p95) for the promised 5 s"),
    ]


def test_metrics_of_earlier_versions_have_no_latencies(tmp_path: Path):
    saved = batch(queries={"best": QueryMetrics.of(batch())}).to_json()
    for one in (saved, saved["queries"]["best"]):
        for name in ("answers", "latency", "latencies"):
            del one[name]
    known = sp.BatchMetrics.from_json(saved)
    assert (known.answers, known.latency, known.latencies) == (0, None, Latencies())
    taken = AnswerLatency(str(tmp_path), None, saved).measured(batch(answers=2, windows=2, rows=1), 0)
    assert taken.latencies == Latencies.of(1.0, 2)
