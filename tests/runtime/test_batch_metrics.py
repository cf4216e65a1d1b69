"""The report of a batch, put together from what its steps left, without a Java in sight."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.rows import SCHEMA, SKYLINE, table

from skypane.control.measurements import BatchMeasurements
from skypane.control.parallelism import Workers
from skypane.control.placement import PlacementChoice
from skypane.control.splitting import splitting
from skypane.metrics import BatchMetrics
from skypane.operators.advance import advance
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.progress import Watermark
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.batch_metrics import batch_metrics
from skypane.runtime.spark.engine.control_loop import ControlLoop
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReference
from skypane.runtime.spark.engine.plq import LiftReports, LiftStage, TaskReport
from skypane.runtime.spark.engine.program import MicroBatch
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.windows import Windows

PLAN = Plan(SKYLINE, Windows(10, 10), "time", Watermark("0 seconds"), source="label")
CONTROL = ControlLoop(splitting("PB_RR"), Workers(3, 2))
NOWHERE: object = None
"""Instead of a DataFrame: nothing that is reported is read off the rows."""


def metrics_of(
    parts: list[pa.Table],
    folder: DocumentStore,
    *,
    punctuation: int | None = None,
    windows: tuple[tuple[int, int], ...] = (),
    interval: float | None = 10.0,
) -> BatchMetrics:
    """Return the metrics of a batch whose rows came in these parts, one to each task; they go through the ledger."""
    folder.child(PARTIALS).make()
    gate = PLAN.gate.after(punctuation)
    reports = [report for part in parts for report in LiftStage(PLAN.query, gate, folder, 7)(part.to_batches())]
    level = LiftReports(tuple(TaskReport.from_json(report.column(0)[0].as_py()) for report in reports))
    step = advance(PLAN.progress, PLAN.windows, PLAN.progress.init(), level.counts, level.sources)
    step = replace(step, rejection=Rejection({FUTURE: 2}))
    panes = OpenPanes[PartialReference].empty(PLAN.windows).add((pane.count.pane, pane.ref) for pane in level.panes)
    measured = BatchMeasurements(level.work, merge_seconds=0.0, interval=interval, exchanged=False)
    steering = CONTROL.decide(CONTROL.init())[1]
    batch = MicroBatch(7, NOWHERE, steering, Timer(), interval)  # type: ignore[arg-type]
    answers = BatchRows(PLAN.validate(SCHEMA), sum(size for _, size in windows), windows)
    place = Decision("placement", PlacementChoice("spark", 2), "as decided")
    metrics = batch_metrics(PLAN, batch, WindowState(step.state, panes), level, step, place, answers, measured)
    assert BatchMetrics.from_json(json.loads(json.dumps(metrics.to_json()))) == metrics
    return metrics


@pytest.fixture
def folder(tmp_path) -> DocumentStore:
    return DocumentStore.at(str(tmp_path))


def test_every_row_is_counted_once(folder: DocumentStore, tmp_path: Path):
    """Seven rows in two tasks: one late, one without a time, one that cannot be ranked, four that enter; two quarantined."""
    parts = [table([3, 11, None]), table([12, 13, 14, 15], xs=[1.0, None, 1.0, 1.0])]
    metrics = metrics_of(parts, folder, punctuation=10)
    assert (metrics.batch_id, metrics.rows, metrics.task_rows) == (7, 7, (3, 4))
    assert metrics.late_rows == 1
    assert metrics.quarantined == {"null time": 1, "null x": 1, FUTURE: 2}
    assert metrics.late_by_source == {"r0": 1}
    assert (metrics.open_panes, metrics.open_rows) == (1, 4)
    assert metrics.open_bytes == sum(file.stat().st_size for file in (tmp_path / PARTIALS).iterdir())
    assert len(metrics.busy) == 2


def test_progress_is_reported_as_in_the_policy(folder: DocumentStore):
    metrics = metrics_of([table([3, 25])], folder)
    assert (metrics.newest, metrics.punctuation, metrics.slack) == (25, 25, 0)
    assert (metrics.seen_rows, metrics.dropped_rows, metrics.drop_budget, metrics.held_rows) == (2, 0, None, 0)
    progress = metrics.decision("progress")
    assert progress is not None
    assert (progress.value, bool(progress.because)) == (25, True)


def test_decisions_are_reported_with_their_reasons(folder: DocumentStore):
    metrics = metrics_of([table([3]), table([4])], folder)
    assert (metrics.exchange, metrics.splitting) == (False, "PB_RR")
    assert (metrics.wlq_where, metrics.wlq_workers) == ("spark", 2)
    assert metrics.decision("placement") == Decision(
        "placement", {"where": "spark", "runs": 2, "parts": 1}, "as decided"
    )
    assert metrics.plq_workers == 2, "where rows are not exchanged, as many as the source has tasks"
    decided = {decision.what: decision for decision in metrics.decisions}
    assert list(decided) == ["progress", "costs", "splitting", "exchange", "lift", "placement"], (
        "no elastic policy, no decision on workers"
    )
    assert all(decision.because for decision in metrics.decisions)
    assert decided["exchange"].value is False


def test_the_last_window_is_reported_by_its_bounds(folder: DocumentStore):
    metrics = metrics_of([table([3])], folder, windows=((-1, 4), (2, 5)))
    assert (metrics.windows, metrics.window_rows) == (2, 9)
    assert metrics.latest_window == {"start": 20, "end": 30, "rows": 5}
    assert metrics_of([table([3])], folder).latest_window is None


def test_a_pane_cut_in_two_counts_twice_in_sigma(folder: DocumentStore):
    """Panes 0 and 1 in the one task, pane 1 in the other too: three partitions of two panes."""
    metrics = metrics_of([table([3, 11]), table([12])], folder)
    assert metrics.sigma == 1.5
    assert metrics.rho is not None
    assert metrics.rho >= 0


def test_what_cannot_be_known_is_none(folder: DocumentStore):
    assert metrics_of([table([3])], folder, interval=None).rho is None, "the length of a first batch is not known"
    empty = metrics_of([table([])], folder)
    assert (empty.rows, empty.sigma, empty.latest_window, empty.newest) == (0, None, None, None)
