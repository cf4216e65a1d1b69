"""What the splitting policies share: what they are told before and after an interval, and the two forms of each.

    send      one tuple at a time, as Algorithm 1 states it: the simulator's
    decide    whole counts per pane: the engine's, which moves a batch at once

Both are one law: a batch of one tuple is sent where send() sends it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from skypane.control.law import ControlLaw
from skypane.control.monitoring import Period
from skypane.control.splitting.routing import Routing
from skypane.types import ConfigError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Panes:
    """What is known of a batch before its rows move.

    rows      pane -> rows, as counted or as expected
    workers   that may own panes
    loads     rows waiting at each worker; none given: nothing waits, as between two micro-batches
    open_from panes below it are closed, and forgotten; None: none is
    """

    rows: Mapping[int, int]
    workers: int
    loads: tuple[int, ...] = ()
    open_from: int | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"need at least one worker, got {self.workers}")
        if self.loads and len(self.loads) != self.workers:
            raise ConfigError(f"need a load for each of {self.workers} workers, got {len(self.loads)}")
        if any(rows < 0 for rows in self.rows.values()):
            raise ConfigError(f"rows of a pane cannot be negative, got {dict(self.rows)}")

    @property
    def waiting(self) -> tuple[int, ...]:
        return self.loads or (0,) * self.workers


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sampling interval showed: the period, None if it could not be measured; sizes of the partitions closed."""

    period: Period | None
    partition_sizes: tuple[int, ...] = ()


class SplittingLaw(ControlLaw[S, Sample, Panes, Routing]):
    """A splitting policy."""

    name: ClassVar[str]

    @abstractmethod
    def send(self, state: S, pane: int, loads: Sequence[int]) -> tuple[S, int]:
        """Send one tuple of a pane; return the state after it and the worker, one of len(loads)."""

    def removed(self, state: S, workers: int, owners: Mapping[int, int]) -> S:  # noqa: ARG002
        """Return the state after the workers from number `workers` on were turned off; `owners` of the open panes.

        Where no worker owns a pane, nothing changes.
        """
        return state

    def route(self, workers: int) -> Routing:
        """Return the routing over `workers` workers of a batch of which nothing is known."""
        _, decision = self.decide(self.init(), Panes({}, workers))
        return decision.value
