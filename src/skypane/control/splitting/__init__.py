"""Assignment of rows to PLQ workers: PB_RR, TB_RR, AS and AS_PID (paper 1, section 4.1.2; paper 5, section 3.1).

    routing.py            the decision: pane -> owners
    descriptor.py         state of an open pane; Algorithm 1 for one tuple and for a count of tuples
    loads.py              the least loaded worker, for one tuple and for many
    splitting_policy.py   interface of the policies: their input, and their two forms
    static.py             PB_RR, TB_RR
    expected.py           the panes expected in the next batch
    adaptive.py           AS, AS_PID: a pane is split when its partition exceeds a threshold

Answers to queries do not depend on the splitting.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from skypane.control.splitting.adaptive import AdaptiveSplitting, PidSplitting
from skypane.control.splitting.pid import FALLBACK
from skypane.control.splitting.routing import Routing, Share
from skypane.control.splitting.splitting_policy import SplittingPolicy, SplittingSample, UpcomingBatch
from skypane.control.splitting.static import PaneRoundRobin, TupleRoundRobin
from skypane.types import ConfigError

__all__ = [
    "CHOICE",
    "POLICIES",
    "STATIC",
    "AdaptiveSplitting",
    "PaneRoundRobin",
    "PidSplitting",
    "Routing",
    "Share",
    "Splitting",
    "SplittingPolicy",
    "SplittingSample",
    "TupleRoundRobin",
    "UpcomingBatch",
    "splitting",
]

Splitting: TypeAlias = SplittingPolicy[Any]

POLICIES: dict[str, Splitting] = {
    policy.name: policy for policy in (PaneRoundRobin(), TupleRoundRobin(), AdaptiveSplitting(), PidSplitting())
}

STATIC: tuple[Splitting, ...] = (PaneRoundRobin(), TupleRoundRobin())
"""The policies that decide at once, however many panes there are."""

CHOICE: tuple[Splitting, ...] = (*STATIC, AdaptiveSplitting(), PidSplitting(gains=FALLBACK))
"""The policies among which a stream chooses for each batch. AS_PID has gains from the start: it is chosen now and then,
so that an experiment that finds them would hardly show how its own alpha works."""


def splitting(policy: str | Splitting) -> Splitting:
    """Return the policy with this name, or the policy itself."""
    if not isinstance(policy, str):
        return policy
    if policy not in POLICIES:
        raise ConfigError(f"splitting must be one of {', '.join(POLICIES)}, got {policy!r}")
    return POLICIES[policy]
