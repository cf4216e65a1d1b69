"""Utilisation factor rho and splitting factor sigma of a stage in one sampling interval.

Paper 1, section 4.1.2, table 1. Measured for each worker i over T seconds: busy time phi_i (waiting for tuples is not
busy), processed tuples q_i, scheduled tuples lambda_i. Computed:

    C    = sum phi_i / sum q_i                      seconds per tuple
    mu_i = q_i + (T - phi_i) / C                    tuples that worker i could process in T       (equation 4)
    rho  = sum lambda_i^2 / (lambda_tot mu_i)       utilisation, weighted by tuples per worker    (equation 5)

The stage keeps up while rho < 1. A worker is busy for longer than T if a micro-batch lasts longer than the interval in
which its rows arrived; it then serves q_i T / phi_i in T, which is the limit of equation 4 as phi_i approaches T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class SamplingPeriod:
    """Measurements of one stage in one sampling interval; entry i of each tuple belongs to worker i.

    seconds      T
    busy         phi: seconds that each worker worked
    processed    q: tuples (or tasks) that each worker finished
    scheduled    lambda: tuples (or tasks) sent to each worker
    panes        closed panes
    partitions   partitions of the closed panes
    pending      tasks that wait for a worker at the end of the interval and count as scheduled; paper 5's published
                 runs count those of the WLQ, whose emitter holds a task back until a worker is ready

    The entry of a worker that was removed stays, with zeros.
    """

    seconds: float
    busy: tuple[float, ...]
    processed: tuple[int, ...]
    scheduled: tuple[int, ...]
    panes: int = 0
    partitions: int = 0
    pending: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ConfigError(f"seconds is the length of a sampling interval, need seconds > 0, got {self.seconds}")
        if not len(self.busy) == len(self.processed) == len(self.scheduled) > 0:
            raise ConfigError(
                f"busy, processed and scheduled must have one entry for each worker, at least one, got "
                f"{len(self.busy)} busy times, {len(self.processed)} processed, {len(self.scheduled)} scheduled"
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
        """Return the workers needed for this work if each is busy for `setpoint` of the interval; at least one."""
        return max(1, math.ceil(sum(self.busy) / (setpoint * self.seconds)))

    @property
    def idle(self) -> float:
        """Idle share of the workers' time, 0 to 1."""
        return 1 - sum(min(phi, self.seconds) for phi in self.busy) / (self.seconds * self.workers)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Utilisation of a period: C in seconds (`cost`), mu_i in tuples per interval (`served`), and rho.

    rho is 0 if nothing was scheduled, and infinite if tuples went to a worker that could serve none.
    """

    cost: float
    served: tuple[float, ...]
    rho: float


def utilisation(period: SamplingPeriod) -> Utilisation | None:
    """Return C, mu_i and rho; None if tuples came but none was processed, so that their cost is unknown."""
    scheduled, processed = sum(period.scheduled), sum(period.processed)
    if not scheduled:
        return Utilisation(math.nan if not processed else sum(period.busy) / processed, (), 0.0)
    if not processed:
        return None
    cost = sum(period.busy) / processed
    served = tuple(_served(q, phi, period.seconds, cost) for q, phi in zip(period.processed, period.busy, strict=True))
    rho = sum(_share(sent, mu) * sent / scheduled for sent, mu in zip(period.scheduled, served, strict=True))
    return Utilisation(cost, served, rho * (1 + period.pending / scheduled))


def _served(processed: int, busy: float, seconds: float, cost: float) -> float:
    """Return mu_i; infinite if the cost is too small to be measured."""
    if busy > seconds:
        return processed * seconds / busy
    return processed + (seconds - busy) / cost if cost > 0 else math.inf


def _share(sent: int, served: float) -> float:
    if not sent:
        return 0.0
    return sent / served if served > 0 else math.inf


def joined(periods: tuple[SamplingPeriod, ...]) -> SamplingPeriod:
    """Return consecutive periods as one; a worker that is missing in a period counts as idle in it."""
    if not periods:
        raise ConfigError("need at least one period to join")
    workers = max(period.workers for period in periods)

    def total(name: str) -> tuple[float, ...]:
        columns = [getattr(period, name) + (0,) * (workers - period.workers) for period in periods]
        return tuple(sum(column) for column in zip(*columns, strict=True))

    return SamplingPeriod(
        seconds=sum(period.seconds for period in periods),
        busy=total("busy"),
        processed=tuple(int(q) for q in total("processed")),
        scheduled=tuple(int(sent) for sent in total("scheduled")),
        panes=sum(period.panes for period in periods),
        partitions=sum(period.partitions for period in periods),
        pending=periods[-1].pending,
    )
