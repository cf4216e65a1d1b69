"""Assemble the metrics of a micro-batch: its rows, the decisions and their reasons, and the seconds of each step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from skypane.control.measurements import BatchMeasurements
from skypane.control.monitoring import SamplingPeriod, utilisation
from skypane.control.placement import PlacementChoice
from skypane.metrics import BatchMetrics
from skypane.operators.advance import ProgressStep
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.runtime.spark.engine.control_loop import BatchDecisions
from skypane.runtime.spark.engine.loss_measures import clocks_off, delays, held_ahead, rows_by_source
from skypane.runtime.spark.engine.plq import LiftReports
from skypane.runtime.spark.engine.program import MicroBatch
from skypane.runtime.spark.engine.utilization import panes_of, period_of, window_period_of
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.windows import Windows


def batch_metrics(
    plan: Plan,
    batch: MicroBatch,
    after: WindowState,
    level: LiftReports,
    step: ProgressStep,
    placement: Decision[PlacementChoice],
    answers: BatchRows,
    measured: BatchMeasurements,
) -> BatchMetrics:
    """Return the metrics of the batch that led to the state `after`; the seconds cover only the steps so far."""
    steering = batch.steering
    rejection = level.rejection.merge(step.rejection)
    return BatchMetrics(
        batch_id=batch.batch_id,
        rows=level.fingerprint.rows,
        late_rows=rejection.late_rows,
        quarantined=rejection.quarantined,
        late_by_source=dict(rejection.by_source),
        punctuation=step.state.punctuation,
        newest=step.state.newest,
        slack=step.state.slack,
        held_rows=step.state.held.rows,
        seen_rows=step.state.seen,
        dropped_rows=step.state.dropped,
        unavoidable_rows=getattr(step.state, "unavoidable", None),
        rows_by_source=rows_by_source(level.sources),
        delays=delays(rejection.late, step.state.newest),
        clocks=clocks_off(step.state),
        held_ahead=held_ahead(step.state),
        max_slack=getattr(plan.progress, "max_slack", None),
        totals=after.totals.to_json(),
        drop_budget=plan.progress.drop_budget,
        amend_budget=plan.progress.amend_budget,
        open_panes=len(after.open.panes),
        open_rows=after.rows,
        open_bytes=after.bytes,
        windows=len(answers.windows),
        window_rows=answers.row_count,
        answers=len(answers.windows),
        latest_window=_latest(plan.windows, answers),
        exchange=steering.exchange.value,
        splitting=steering.splitting.value,
        plq_workers=steering.workers.plq if steering.exchange.value else len(level.tasks),
        wlq_workers=placement.value.tasks,
        wlq_where=placement.value.where,
        wlq_busy=tuple(run.busy for run in measured.runs if run.windows),
        seconds=batch.timer.stop(),
        busy=tuple(task.busy for task in level.tasks),
        task_rows=tuple(task.fingerprint.rows for task in level.tasks),
        started_at=batch.timer.started_at,
        sigma=sigma_of(measured),
        rho=rho_of(period_of(measured)),
        rho_wlq=rho_of(window_period_of(measured)),
        workers=asdict(steering.workers),
        decisions=tuple(_decisions(steering, step, placement)),
    )


def _decisions(
    steering: BatchDecisions, step: ProgressStep, placement: Decision[PlacementChoice]
) -> Iterator[Decision[Any]]:
    """Yield the decisions for the batch, with JSON values."""
    progress = step.decision
    yield Decision(progress.what, progress.value.time, progress.because, progress.figures)
    yield from plain(steering.costs, steering.splitting, steering.exchange, steering.lift, placement, steering.elastic)


def plain(*decisions: Decision[Any] | None) -> Iterator[Decision[Any]]:
    """Yield the decisions that were made, with JSON values."""
    return (Decision(**decision.to_json()) for decision in decisions if decision is not None)


def sigma_of(measured: BatchMeasurements) -> float | None:
    """Return the splitting factor of a batch."""
    partitions = panes_of(measured)
    return len(partitions) / len({work.pane for work in partitions}) if partitions else None


def rho_of(period: SamplingPeriod | None) -> float | None:
    """Return the utilisation factor of an interval."""
    load = None if period is None else utilisation(period)
    return load.rho if load is not None and math.isfinite(load.rho) else None


def _latest(windows: Windows, answers: BatchRows) -> dict[str, int] | None:
    if not answers.windows:
        return None
    window, rows = answers.windows[-1]
    start, end = windows.bounds(window)
    return {"start": start, "end": end, "rows": rows}
