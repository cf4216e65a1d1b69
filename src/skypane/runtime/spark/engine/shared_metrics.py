"""Assemble the metrics of a micro-batch of several queries: those of each, and those of the batch as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from skypane.control.measurements import BatchMeasurements
from skypane.control.placement import DueWindows
from skypane.metrics import BatchMetrics, QueryMetrics
from skypane.runtime.spark.engine.batch_metrics import plain, rho_of, sigma_of
from skypane.runtime.spark.engine.program import MicroBatch
from skypane.runtime.spark.engine.shared_lift import SharedReports
from skypane.runtime.spark.engine.utilization import period_of, window_period_of
from skypane.types import Micros


def shared_metrics(
    batch: MicroBatch, queries: Mapping[str, BatchMetrics], lead: str, rows: int, measured: BatchMeasurements
) -> BatchMetrics:
    """Return the metrics of a batch of `rows` rows from those of its queries; `lead` is the one with the shortest panes.

    Rows read and seconds are those of the batch. Each query has every row, so a sum would count rows several times: the
    numbers of rows by where they are, which add up to those read, are those of one query, in each batch the same one. It
    has read the most, as queries that were added later have not read all; and the shortest panes, as these are closed
    first. Numbers of panes and windows are sums over the queries; the punctuation is the earliest one: all queries are
    complete before it.
    """
    each, steering = list(queries.values()), batch.steering
    most = queries[max(queries, key=lambda name: (queries[name].totals["read"], name == lead))]
    return BatchMetrics(
        batch_id=batch.batch_id,
        rows=rows,
        late_rows=most.late_rows,
        quarantined=most.quarantined,
        late_by_source=most.late_by_source,
        punctuation=_earliest([one.punctuation for one in each]),
        newest=max((one.newest for one in each if one.newest is not None), default=None),
        slack=max((one.slack for one in each if one.slack is not None), default=None),
        seen_rows=most.seen_rows,
        dropped_rows=most.dropped_rows,
        unavoidable_rows=most.unavoidable_rows,
        rows_by_source=most.rows_by_source,
        delays=most.delays,
        clocks=most.clocks,
        held_ahead=most.held_ahead,
        max_slack=most.max_slack,
        totals=most.totals,
        drop_budget=most.drop_budget,
        amend_budget=most.amend_budget,
        open_panes=sum(one.open_panes for one in each),
        open_rows=sum(one.open_rows for one in each),
        open_bytes=sum(one.open_bytes for one in each),
        windows=sum(one.windows for one in each),
        window_rows=sum(one.window_rows for one in each),
        latest_window=None,
        exchange=steering.exchange.value,
        splitting=steering.splitting.value,
        plq_workers=steering.workers.plq if steering.exchange.value else len(measured.tasks),
        wlq_workers=max(one.wlq_workers for one in each),
        wlq_where=max((one.wlq_where for one in each), key=("driver", "threads", "spark").index),
        wlq_busy=tuple(run.busy for run in measured.runs),
        seconds=batch.timer.stop(),
        busy=tuple(task.busy for task in measured.tasks),
        task_rows=tuple(task.rows for task in measured.tasks),
        empty_windows=sum(one.empty_windows for one in each),
        early_windows=sum(one.early_windows for one in each),
        started_at=batch.timer.started_at,
        sigma=sigma_of(measured),
        rho=rho_of(period_of(measured)),
        rho_wlq=rho_of(window_period_of(measured)),
        workers=asdict(steering.workers),
        held_rows=most.held_rows,
        amended=_amended(each),
        decisions=tuple(plain(steering.costs, steering.splitting, steering.exchange, steering.lift, steering.elastic)),
        queries={name: QueryMetrics.of(one) for name, one in queries.items()},
    )


def shared_measurements(
    batch: MicroBatch, each: Sequence[BatchMeasurements], reports: SharedReports, lead: str
) -> BatchMeasurements:
    """Return the measurements of a batch as a whole from those of its queries; `lead` is the one with the shortest panes.

    The costs of windows are not learned from a batch in which several queries answer: its seconds are those of all. The
    costs of runs differ from query to query, and are not learned at all.
    """
    busy = [one for one in each if isinstance(one.due, DueWindows) and one.due.windows]
    alone = busy[0] if len(busy) == 1 else replace(each[0], due=None, where="driver")
    return replace(
        alone,
        tasks=tuple(task.work(lead) for task in reports.tasks),
        merge_seconds=batch.timer.seconds["wlq"],
        runs=tuple(run for one in each for run in one.runs if run.windows),
        lift_seconds=batch.timer.seconds.get("plq", 0.0),
        pieces=(),
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def _amended(each: Sequence[BatchMetrics]) -> dict[str, int] | None:
    """Return the counts of amended windows of all queries; None if they answer each window once."""
    counts = [one.amended for one in each if one.amended is not None]
    return _added(counts) if counts else None


def _earliest(times: Sequence[Micros | None]) -> Micros | None:
    """Return the earliest punctuation; None if a query has none yet."""
    known = [time for time in times if time is not None]
    return min(known) if len(known) == len(times) else None
