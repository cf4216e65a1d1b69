"""How hard a stage works: the utilisation factor rho and the splitting factor sigma of one sampling interval.

Paper 1, section 4.1.2, table 1. Measured for each worker i over T seconds: busy time phi_i (waiting for tuples is not
busy), processed tuples q_i, scheduled tuples lambda_i. Computed:

    C    = sum phi_i / sum q_i                      seconds per tuple
    mu_i = q_i + (T - phi_i) / C                    what worker i could have processed in T       (equation 4)
    rho  = sum lambda_i^2 / (lambda_tot mu_i)       utilisation, weighted by where tuples went    (equation 5)

The stage keeps up while rho < 1. A worker may have been busy for longer than T, where a micro-batch lasts longer than
the interval in which its rows arrived; it then served q_i T / phi_i in T, which is where equation 4 ends as phi_i
comes near T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Period:
    """What was measured of one stage in one sampling interval; entry i of each tuple belongs to worker i.

    seconds      T
    busy         phi: seconds that each worker worked
    processed    q: tuples (or tasks) that each worker finished
    scheduled    lambda: tuples (or tasks) sent to each worker
    panes        panes that were closed
    partitions   partitions that those panes had

    A worker that vanished has zeros from then on: its entry stays.
    """

    seconds: float
    busy: tuple[float, ...]
    processed: tuple[int, ...]
    scheduled: tuple[int, ...]
    panes: int = 0
    partitions: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ConfigError(f"a sampling interval must last, need seconds > 0, got {self.seconds}")
        if not len(self.busy) == len(self.processed) == len(self.scheduled) > 0:
            raise ConfigError(
                f"need the figures of the same workers, at least one: {len(self.busy)} busy times, "
                f"{len(self.processed)} processed, {len(self.scheduled)} scheduled"
            )
        for name in ("busy", "processed", "scheduled"):
            for worker, value in enumerate(getattr(self, name)):
                if not 0 <= value < math.inf:  # NaN too
                    raise ConfigError(f"{name} of worker {worker} must be finite and not negative, got {value}")

    @property
    def workers(self) -> int:
        return len(self.busy)

    @property
    def sigma(self) -> float | None:
        """The splitting factor: partitions per closed pane; None if no pane was closed."""
        return self.partitions / self.panes if self.panes else None

    def needed(self, setpoint: float = 0.9) -> int:
        """Return how many workers would have done this work, each busy for `setpoint` of the interval; at least one."""
        return max(1, math.ceil(sum(self.busy) / (setpoint * self.seconds)))

    @property
    def idle(self) -> float:
        """Share of the workers' time in which they had nothing to do, 0 to 1."""
        return 1 - sum(min(phi, self.seconds) for phi in self.busy) / (self.seconds * self.workers)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What follows from a period: C in seconds, mu_i in tuples per interval, rho.

    rho is 0 if nothing was scheduled, infinite if tuples went to a worker that could serve none.
    """

    cost: float
    served: tuple[float, ...]
    rho: float


def utilisation(period: Period) -> Utilisation | None:
    """Return C, mu_i and rho; None if tuples came and none was processed, so that nothing is known of their cost."""
    scheduled, processed = sum(period.scheduled), sum(period.processed)
    if not scheduled:
        return Utilisation(math.nan if not processed else sum(period.busy) / processed, (), 0.0)
    if not processed:
        return None
    cost = sum(period.busy) / processed
    served = tuple(_served(q, phi, period.seconds, cost) for q, phi in zip(period.processed, period.busy, strict=True))
    rho = sum(_share(sent, mu) * sent / scheduled for sent, mu in zip(period.scheduled, served, strict=True))
    return Utilisation(cost, served, rho)


def _served(processed: int, busy: float, seconds: float, cost: float) -> float:
    """Return mu_i; a cost too small to be measured is no limit."""
    if busy > seconds:
        return processed * seconds / busy
    return processed + (seconds - busy) / cost if cost > 0 else math.inf


def _share(sent: int, served: float) -> float:
    if not sent:
        return 0.0
    return sent / served if served > 0 else math.inf


def joined(periods: tuple[Period, ...]) -> Period:
    """Return consecutive periods as one; workers that came or went count as idle where they are missing."""
    if not periods:
        raise ConfigError("need at least one period to join")
    workers = max(period.workers for period in periods)

    def total(name: str) -> tuple[float, ...]:
        columns = [getattr(period, name) + (0,) * (workers - period.workers) for period in periods]
        return tuple(sum(column) for column in zip(*columns, strict=True))

    return Period(
        seconds=sum(period.seconds for period in periods),
        busy=total("busy"),
        processed=tuple(int(q) for q in total("processed")),
        scheduled=tuple(int(sent) for sent in total("scheduled")),
        panes=sum(period.panes for period in periods),
        partitions=sum(period.partitions for period in periods),
    )
