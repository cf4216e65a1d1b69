"""Measurements of a batch for the control policies: counts and seconds, never rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from skypane.control.forecast import RateAhead
from skypane.control.placement import DueRows, DueWindows, Place
from skypane.control.window_work import Work

LiftPlace: TypeAlias = Literal["driver", "spark"]


@dataclass(frozen=True, slots=True)
class PaneWork:
    """Rows of one pane that one task lifted, and the seconds spent on them; merged partials count too."""

    pane: int
    rows: int
    busy: float


@dataclass(frozen=True, slots=True)
class TaskWork:
    """One task of the pane-level query: its rows, its busy seconds, and the work on each pane.

    A task also sorts rows into panes and writes partials, so the seconds of its panes add up to less than its own.
    """

    rows: int
    busy: float
    panes: tuple[PaneWork, ...]


@dataclass(frozen=True, slots=True)
class RunWork:
    """One task of the window-level query, or the driver instead of one: windows answered, and busy seconds.

    cpu   seconds of its thread, without those in which it waited for the interpreter lock; None: not measured
    """

    windows: int
    busy: float
    cpu: float | None = None

    @property
    def worked(self) -> float:
        """Seconds of its own work, as far as measured."""
        return self.busy if self.cpu is None else self.cpu


@dataclass(frozen=True, slots=True)
class PieceWork:
    """One of the parts of the windows [begin, end) of a batch: its work, if all parts are equal, and its busy seconds."""

    begin: int
    end: int
    part: int
    work: Work
    busy: float


@dataclass(frozen=True, slots=True)
class BatchMeasurements:
    """Measurements of one batch.

    tasks           tasks of the pane-level query
    merge_seconds   duration of the window-level query
    interval        seconds from the start of the previous batch to the start of this one; None after a driver start
    exchanged       whether rows were exchanged, so that `tasks` does not show the source's own partitions
    runs            tasks of the window-level query
    lift_seconds    duration of the pane-level query
    backlog         rows that wait at the source, if it reports them
    ahead           a rate that the source states for a time to come; None: it states none
    overrun         seconds by which the batch exceeds the trigger's interval; rows that came in them wait too
    sized           whether the source chooses the number of reader tasks by the backlog
    due             windows, or rows of a front, that the window-level query had to process
    where           where it processed them
    lifted          where rows were lifted: by workers in a job, or in the driver
    pieces          the pieces into which the windows of one query were divided, if they were

    A task's busy seconds divided by the interval are the utilisation factor of its worker.
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
    due: DueWindows | DueRows | None = None
    where: Place = "driver"
    ahead: RateAhead | None = None
    pieces: tuple[PieceWork, ...] = ()
    lifted: LiftPlace = "spark"
