"""A batch as a sampling interval of both stages, from which utilisation factors follow (control/monitoring.py).

The stages take turns on the same cores: a stage may use what is left of the interval by the other one. Where both take
longer than the interval together, each has its share of it: otherwise a stage would have nothing left, however little it
needs, because the other is slow.
"""

from __future__ import annotations

from dataclasses import replace

from skypane.control.elasticity.interval import Stages
from skypane.control.measured import Measured, PaneWork
from skypane.control.monitoring import Period

_SHORTEST = 1e-3
"""Seconds that an interval counts for at least: with less left of it, the stage is overloaded beyond any measure."""


def period_of(measured: Measured) -> Period | None:
    """Return the pane level's interval; None where its length is not known: after a start, or by a clock gone back.

    The interval is that in which the batch's rows came, less what the window level takes of it. A pane counts as closed
    with its batch: what comes later of it makes partitions of its own.
    """
    if measured.interval is None or measured.interval <= 0 or not measured.tasks:
        return None
    rows = tuple(task.rows for task in measured.tasks)
    panes = panes_of(measured)
    return Period(
        seconds=_left(measured.interval, measured.lift_seconds, measured.merge_seconds),
        busy=tuple(task.busy for task in measured.tasks),
        processed=rows,
        scheduled=rows,
        panes=len({work.pane for work in panes}),
        partitions=len(panes),
    )


def window_period_of(measured: Measured) -> Period | None:
    """Return the window level's interval, its tasks being windows; None where period_of() is, or no window was due."""
    windows = tuple(run.windows for run in measured.runs)
    if measured.interval is None or measured.interval <= 0 or not any(windows):
        return None
    return Period(
        seconds=_left(measured.interval, measured.merge_seconds, measured.lift_seconds),
        busy=tuple(run.busy for run in measured.runs),
        processed=windows,
        scheduled=windows,
    )


def _left(interval: float, own: float, other: float) -> float:
    share = own / (own + other) if own > 0 else 0.0
    return max(interval - other, interval * share, _SHORTEST)


def stages_of(measured: Measured) -> Stages:
    """Return what the second level of adaptation is told of a batch.

    Where rows stayed where they were read, the source cut the panes, not the law of splitting: no factor is known, nor
    which workers the law would have left without rows.
    """
    plq = period_of(measured)
    if plq is not None and not measured.exchanged:
        plq = replace(plq, panes=0, partitions=0)
    return Stages(
        plq,
        window_period_of(measured),
        arrived=sum(task.rows for task in measured.tasks),
        backlog=measured.backlog + _overdue(measured),
        wlq_tasks=sum(run.windows for run in measured.runs),
        used_plq=plq.needed() if plq is not None and measured.exchanged else None,
        used_wlq=sum(run.windows > 0 for run in measured.runs) or None,
    )


def _overdue(measured: Measured) -> int:
    """Return the rows that have come while the batch lasted longer than its trigger allows, at the rate of its own rows."""
    if not measured.interval or measured.interval <= 0:
        return 0
    return round(sum(task.rows for task in measured.tasks) / measured.interval * measured.overrun)


def panes_of(measured: Measured) -> list[PaneWork]:
    """Return the partitions that the batch's tasks lifted."""
    return [work for task in measured.tasks for work in task.panes]
