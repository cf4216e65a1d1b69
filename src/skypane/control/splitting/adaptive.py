"""Panes are split where a partition reaches a threshold: AS and AS_PID (paper 1, section 4.1.2).

    theta = alpha theta_base,    theta_base = mean + standard deviation of the partitions closed of late

AS has alpha = 1. That is the rate-aware partitioning of paper 3, section 4.2: a pane larger than the mean of recent
ones by more than their deviation is divided, and small ones are made up for by giving more of them to one worker,
which the least loaded worker does here. AS_PID moves alpha so that the utilisation factor comes to its setpoint: the
least splitting that keeps up. Where nothing has been closed yet, nothing is known to be large, and nothing is split.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from skypane.control.law import Decision
from skypane.control.monitoring import utilisation
from skypane.control.pid import FALLBACK, Gains, Pid, PidState
from skypane.control.relay import Relay, RelayState
from skypane.control.snapshots import JsonState
from skypane.control.splitting.descriptor import PaneDescriptor, assign, send
from skypane.control.splitting.law import Panes, Sample, SplittingLaw
from skypane.control.splitting.routing import Routing, Share
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class AdaptiveState(JsonState):
    """panes: PD, of open panes; sizes: the partitions closed of late, oldest first."""

    panes: dict[int, PaneDescriptor] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()


S = TypeVar("S", bound=AdaptiveState)


def theta_base(sizes: Sequence[int]) -> float:
    """Return mean + standard deviation of partition sizes; infinite if there are none."""
    if not sizes:
        return math.inf
    mean = sum(sizes) / len(sizes)
    return mean + math.sqrt(sum((size - mean) * (size - mean) for size in sizes) / len(sizes))


@dataclass(frozen=True)
class ThresholdSplitting(SplittingLaw[S]):
    """What AS and AS_PID share; `recent` is how many closed partitions theta_base looks back on."""

    recent: int = 100

    def __post_init__(self) -> None:
        if self.recent < 1:
            raise ConfigError(f"theta_base needs at least one recent partition, got recent={self.recent}")

    @abstractmethod
    def alpha(self, state: S) -> float:
        """Return the factor on theta_base."""

    def theta(self, state: S) -> float:
        """Return the splitting threshold in tuples: at least one, infinite while nothing has been closed."""
        return max(1.0, self.alpha(state) * theta_base(state.sizes))

    def observe(self, state: S, measured: Sample) -> S:
        sizes = (*state.sizes, *(size for size in measured.partition_sizes if size > 0))
        return replace(state, sizes=sizes[-self.recent :])

    def send(self, state: S, pane: int, loads: Sequence[int]) -> tuple[S, int]:
        descriptor, worker = send(state.panes.get(pane, PaneDescriptor()), pane, self.theta(state), loads)
        return replace(state, panes={**state.panes, pane: descriptor}), worker

    def removed(self, state: S, workers: int, owners: Mapping[int, int]) -> S:
        moved = {pane: entry.without(workers, owners[pane]) for pane, entry in state.panes.items() if pane in owners}
        return replace(state, panes={**state.panes, **moved})

    def decide(self, state: S, known: Panes) -> tuple[S, Decision[Routing]]:
        theta = self.theta(state)
        state = self.purged(state, known.open_from)
        panes, loads = dict(state.panes), list(known.waiting)
        shares: dict[int, tuple[Share, ...]] = {}
        for pane in sorted(known.rows):
            if not known.rows[pane]:
                continue
            panes[pane], shares[pane] = assign(panes.get(pane, PaneDescriptor()), pane, theta, known.rows[pane], loads)
            for share in shares[pane]:
                loads[share.worker] += share.rows
        sigma = sum(map(len, shares.values())) / len(shares) if shares else 1.0
        because = f"theta {theta:.0f} rows = alpha {self.alpha(state):.2f} x base {theta_base(state.sizes):.0f}"
        figures = {"sigma": sigma, "alpha": self.alpha(state), "partitions known": float(len(state.sizes))}
        if math.isfinite(theta):
            figures["theta"] = theta
        decision = Decision("splitting", Routing(known.workers, shares), because, figures)
        return replace(state, panes=panes), decision

    def purged(self, state: S, open_from: int | None) -> S:
        """Return the state without the panes that are closed."""
        if open_from is None:
            return state
        return replace(state, panes={pane: entry for pane, entry in state.panes.items() if pane >= open_from})


@dataclass(frozen=True)
class AdaptiveSplitting(ThresholdSplitting[AdaptiveState]):
    """AS: theta = theta_base."""

    State = AdaptiveState
    name: ClassVar[str] = "AS"

    def init(self) -> AdaptiveState:
        return AdaptiveState()

    def alpha(self, state: AdaptiveState) -> float:  # noqa: ARG002
        return 1.0


@dataclass(frozen=True, slots=True)
class PidSplittingState(AdaptiveState):
    """AdaptiveState; the PID; the relay experiment while it lasts; gains that it found; the last rho."""

    pid: PidState = field(default_factory=PidState)
    relay: RelayState | None = None
    gains: Gains | None = None
    rho: float | None = None


@dataclass(frozen=True)
class PidSplitting(ThresholdSplitting[PidSplittingState]):
    """AS_PID: alpha by a PID on rho.

    gains   None: found by `relay` during warm-up, or `fallback` if that finds none, or softer ones
    """

    pid: Pid = field(default_factory=Pid)
    relay: Relay = field(default_factory=Relay)
    gains: Gains | None = None
    fallback: Gains = FALLBACK

    State = PidSplittingState
    name: ClassVar[str] = "AS_PID"

    def init(self) -> PidSplittingState:
        return PidSplittingState(relay=RelayState() if self.gains is None else None, gains=self.gains)

    def alpha(self, state: PidSplittingState) -> float:
        return state.pid.alpha

    def observe(self, state: PidSplittingState, measured: Sample) -> PidSplittingState:
        """An interval without tuples, or of which rho is not known, moves nothing."""
        state = super().observe(state, measured)
        found = None if measured.period is None else utilisation(measured.period)
        if found is None or not found.served:
            return state
        error = self.pid.error(found.rho)
        if error is None:
            return state
        state = replace(state, rho=min(found.rho, self.pid.rho_cap))
        if state.relay is not None:
            return self._tuned(state, state.relay, error)
        return replace(state, pid=self.pid.step(state.pid, state.gains or self.fallback, found.rho))

    def _tuned(self, state: PidSplittingState, relay: RelayState, error: float) -> PidSplittingState:
        """One more interval of the relay; at its end, its gains."""
        relay = self.relay.observe(relay, error)
        if self.relay.ended(relay):
            return replace(
                state,
                relay=None,
                gains=self._firmer(self.relay.gains(relay)),
                pid=replace(state.pid, total=0.0, last=error),
            )
        alpha = self.pid.moved(state.pid.alpha, self.relay.change(relay))
        return replace(state, relay=relay, pid=replace(state.pid, alpha=alpha))

    def _firmer(self, found: Gains | None) -> Gains:
        """Return the gains that were found, unless they are softer than the fallback's.

        A relay takes the noise of bursts for the loop's own swing, and so the loop for a steeper one than it is.
        """
        return self.fallback if found is None or found.kp < self.fallback.kp else found
