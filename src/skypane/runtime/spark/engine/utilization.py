"""A batch as a sampling interval of both stages, from which utilisation factors are computed (control/monitoring.py).

The stages run in turn on the same cores, so each stage has the part of the interval that the other one does not use. If
both together take longer than the interval, each has a share in proportion to its time; otherwise a slow stage would
leave no time for the other, however little that needs.
"""

from __future__ import annotations

from dataclasses import replace

from skypane.control.elasticity.interval import StageSamples
from skypane.control.measurements import BatchMeasurements, PaneWork
from skypane.control.monitoring import SamplingPeriod

_SHORTEST = 1e-3
"""Minimum seconds of an interval; with less, the stage is overloaded in any case."""


def period_of(measured: BatchMeasurements) -> SamplingPeriod | None:
    """Return the pane level's interval; None if its length is unknown: after a start, or if the clock went back.

    The interval is the time in which the batch's rows arrived, less the time that the window level takes. A pane counts
    as closed with its batch, because its later rows form partitions of their own.
    """
    if measured.interval is None or measured.interval <= 0 or not measured.tasks:
        return None
    rows = tuple(task.rows for task in measured.tasks)
    panes = panes_of(measured)
    return SamplingPeriod(
        seconds=_left(measured.interval, measured.lift_seconds, measured.merge_seconds),
        busy=tuple(task.busy for task in measured.tasks),
        processed=rows,
        scheduled=rows,
        panes=len({work.pane for work in panes}),
        partitions=len(panes),
    )


def window_period_of(measured: BatchMeasurements) -> SamplingPeriod | None:
    """Return the window level's interval, with windows as tasks; None if its length is unknown or no window was due."""
    windows = tuple(run.windows for run in measured.runs)
    if measured.interval is None or measured.interval <= 0 or not any(windows):
        return None
    return SamplingPeriod(
        seconds=_left(measured.interval, measured.merge_seconds, measured.lift_seconds),
        busy=tuple(run.busy for run in measured.runs),
        processed=windows,
        scheduled=windows,
    )


def _left(interval: float, own: float, other: float) -> float:
    share = own / (own + other) if own > 0 else 0.0
    return max(interval - other, interval * share, _SHORTEST)


def stages_of(measured: BatchMeasurements) -> StageSamples:
    """Return the samples of a batch for the second level of adaptation.

    Without an exchange the source has split the panes, not the splitting policy. The splitting factor and the number of
    workers that the policy would have used are then unknown.
    """
    plq = period_of(measured)
    if plq is not None and not measured.exchanged:
        plq = replace(plq, panes=0, partitions=0)
    return StageSamples(
        plq,
        window_period_of(measured),
        arrived=sum(task.rows for task in measured.tasks),
        backlog=measured.backlog + _overdue(measured),
        wlq_tasks=sum(run.windows for run in measured.runs),
        used_plq=plq.needed() if plq is not None and measured.exchanged else None,
        used_wlq=sum(run.windows > 0 for run in measured.runs) or None,
        ahead=measured.ahead,
    )


def _overdue(measured: BatchMeasurements) -> int:
    """Return the rows that arrived while the batch exceeded its trigger interval, at the rate of its own rows."""
    if not measured.interval or measured.interval <= 0:
        return 0
    return round(sum(task.rows for task in measured.tasks) / measured.interval * measured.overrun)


def panes_of(measured: BatchMeasurements) -> list[PaneWork]:
    """Return the partitions of panes that the batch's tasks lifted."""
    return [work for task in measured.tasks for work in task.panes]
