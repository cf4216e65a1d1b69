"""Adaptive splitting: a pane is split when a partition reaches a threshold; AS and AS_PID (paper 1, section 4.1.2).

    theta = alpha theta_base,    theta_base = mean + standard deviation of recently closed partitions

AS has alpha = 1. It is the rate-aware partitioning of paper 3, section 4.2: a pane is divided if it exceeds the mean of
recent ones by more than their standard deviation; small panes are balanced by assigning more of them to one worker,
here by choosing the least loaded worker. AS_PID adjusts alpha so that the utilisation factor reaches its setpoint, with
the least splitting that keeps up. Before the first partition is closed, theta is infinite and no pane is split.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from skypane.control.monitoring import utilisation
from skypane.control.splitting.descriptor import PaneDescriptor, assign, send
from skypane.control.splitting.pid import FALLBACK, Gains, Pid, PidState
from skypane.control.splitting.relay import Relay, RelayState
from skypane.control.splitting.routing import Routing, Share
from skypane.control.splitting.splitting_policy import SplittingPolicy, SplittingSample, UpcomingBatch
from skypane.policy import Decision
from skypane.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class AdaptiveState(JsonState):
    """panes: PD, the descriptors of open panes; sizes: sizes of recently closed partitions, oldest first."""

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
class ThresholdSplitting(SplittingPolicy[S]):
    """Base class of AS and AS_PID; `recent` is the number of closed partitions in theta_base."""

    recent: int = 100

    def __post_init__(self) -> None:
        if self.recent < 1:
            raise ConfigError(f"recent must be at least 1 partition, got {self.recent}")

    @abstractmethod
    def alpha(self, state: S) -> float:
        """Return the factor on theta_base."""

    def theta(self, state: S) -> float:
        """Return the splitting threshold in tuples: at least one, infinite before the first closed partition."""
        return max(1.0, self.alpha(state) * theta_base(state.sizes))

    def observe(self, state: S, measured: SplittingSample) -> S:
        sizes = (*state.sizes, *(size for size in measured.partition_sizes if size > 0))
        return replace(state, sizes=sizes[-self.recent :])

    def send(self, state: S, pane: int, loads: Sequence[int]) -> tuple[S, int]:
        descriptor, worker = send(state.panes.get(pane, PaneDescriptor()), pane, self.theta(state), loads)
        return replace(state, panes={**state.panes, pane: descriptor}), worker

    def removed(self, state: S, workers: int, owners: Mapping[int, int]) -> S:
        moved = {pane: entry.without(workers, owners[pane]) for pane, entry in state.panes.items() if pane in owners}
        return replace(state, panes={**state.panes, **moved})

    def decide(self, state: S, known: UpcomingBatch) -> tuple[S, Decision[Routing]]:
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
        """Return the state without closed panes."""
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
    """AdaptiveState, the state of the PID, the relay experiment while it runs, the gains it found, and the last rho."""

    pid: PidState = field(default_factory=PidState)
    relay: RelayState | None = None
    gains: Gains | None = None
    rho: float | None = None


@dataclass(frozen=True)
class PidSplitting(ThresholdSplitting[PidSplittingState]):
    """AS_PID: alpha by a PID on rho.

    gains   None: found by `relay` during warm-up; `fallback` if it finds none, or smaller ones than `fallback`
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

    def observe(self, state: PidSplittingState, measured: SplittingSample) -> PidSplittingState:
        """Return the state after an interval; without tuples, or without a known rho, alpha does not change."""
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
        """Return the state after one more interval of the relay, with its gains when it ends."""
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
        """Return the gains that were found, or the fallback if they are smaller.

        A relay mistakes the noise of bursts for the loop's oscillation, and so overestimates the slope of the loop.
        """
        return self.fallback if found is None or found.kp < self.fallback.kp else found
