"""What a batch has shown of its work, as the laws of control see it: counts and seconds, never rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaneWork:
    """The rows of one pane that one task lifted, and the seconds that it took; partials that were merged count too."""

    pane: int
    rows: int
    busy: float


@dataclass(frozen=True, slots=True)
class TaskWork:
    """One task of the pane-level query: its rows, the seconds it was busy with them, and what of that went to panes.

    A task is also busy sorting rows into panes and writing partials, so the panes' seconds are fewer than its own.
    """

    rows: int
    busy: float
    panes: tuple[PaneWork, ...]


@dataclass(frozen=True, slots=True)
class RunWork:
    """One task of the window-level query, or the driver in its place: windows answered, and seconds that it took."""

    windows: int
    busy: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch.

    tasks           of the pane-level query
    merge_seconds   what the window-level query took
    interval        seconds from the start of the batch before to the start of this one; None after a start
    exchanged       whether rows were routed, so that `tasks` tells nothing of the source's own partitions
    runs            of the window-level query
    lift_seconds    what the pane-level query took
    backlog         rows that wait at the source, where it tells of them
    overrun         seconds that the batch has lasted beyond the trigger's interval: rows that came in them wait too
    sized           whether the source sets the tasks that read a batch by what waits

    A task's busy seconds over the interval are the utilisation factor of the worker that ran it.
    """

    tasks: tuple[TaskWork, ...]
    merge_seconds: float
    interval: float | None
    exchanged: bool
    runs: tuple[RunWork, ...] = ()
    lift_seconds: float = 0.0
    backlog: int = 0
    overrun: float = 0.0
    sized: bool = False
