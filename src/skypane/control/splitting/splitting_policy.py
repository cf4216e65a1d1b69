"""Interface of the splitting policies: their input before and after an interval, and their two forms.

    send      one tuple at a time, as in Algorithm 1; used by the simulator
    decide    counts by pane; used by the engine, which routes a batch at once

Both forms agree: a batch of one tuple goes where send() sends it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from skypane.control.monitoring import SamplingPeriod
from skypane.control.splitting.routing import Routing
from skypane.policy import Policy
from skypane.snapshots import JsonState
from skypane.types import ConfigError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class UpcomingBatch:
    """Facts known of a batch before its rows are routed.

    rows        pane -> rows, counted or expected
    workers     number of workers that may own panes
    loads       rows waiting at each worker; empty: no rows wait, as between two micro-batches
    open_from   panes below it are closed and are removed from the state; None: no pane is closed
    """

    rows: Mapping[int, int]
    workers: int
    loads: tuple[int, ...] = ()
    open_from: int | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers must be at least 1, got {self.workers}")
        if self.loads and len(self.loads) != self.workers:
            raise ConfigError(f"loads must have an entry for each of {self.workers} workers, got {len(self.loads)}")
        if any(rows < 0 for rows in self.rows.values()):
            raise ConfigError(f"rows of a pane must not be negative, got {dict(self.rows)}")

    @property
    def waiting(self) -> tuple[int, ...]:
        return self.loads or (0,) * self.workers


@dataclass(frozen=True, slots=True)
class SplittingSample:
    """Measurements of a sampling interval: the period, None if not measured, and the sizes of closed partitions."""

    period: SamplingPeriod | None
    partition_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NoState(JsonState):
    """The state of a splitting policy that keeps nothing between two batches."""


class SplittingPolicy(Policy[S, SplittingSample, UpcomingBatch, Routing]):
    """A splitting policy."""

    name: ClassVar[str]

    @abstractmethod
    def send(self, state: S, pane: int, loads: Sequence[int]) -> tuple[S, int]:
        """Send one tuple of a pane; return the state after it, and the worker, below len(loads)."""

    def removed(self, state: S, workers: int, owners: Mapping[int, int]) -> S:  # noqa: ARG002
        """Return the state after workers from number `workers` on were turned off; `owners` maps open panes to owners.

        Policies without owners of panes return the state unchanged.
        """
        return state
