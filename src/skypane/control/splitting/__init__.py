"""Which PLQ worker gets a row: PB_RR, TB_RR, AS and AS_PID (paper 1, section 4.1.2; paper 5, section 3.1).

    routing.py       the value that is decided: pane -> owners
    descriptor.py    what is known of a pane that is being filled; Algorithm 1, a tuple or a whole count at a time
    loads.py         the least loaded worker, for one tuple and for many
    law.py           what the policies share: what they are told, and their two forms
    static.py        PB_RR, TB_RR
    expected.py      the panes of a batch, before it has come
    adaptive.py      AS, AS_PID: a pane is split where its partition exceeds a threshold

Answers to queries never depend on any of this.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from skypane.control.splitting.adaptive import AdaptiveSplitting, PidSplitting
from skypane.control.splitting.law import Panes, Sample, SplittingLaw
from skypane.control.splitting.routing import Routing, Share
from skypane.control.splitting.static import PaneRoundRobin, TupleRoundRobin
from skypane.types import ConfigError

__all__ = [
    "POLICIES",
    "AdaptiveSplitting",
    "PaneRoundRobin",
    "Panes",
    "PidSplitting",
    "Routing",
    "Sample",
    "Share",
    "Splitting",
    "SplittingLaw",
    "TupleRoundRobin",
    "splitting",
]

Splitting: TypeAlias = SplittingLaw[Any]

POLICIES: dict[str, Splitting] = {
    law.name: law for law in (PaneRoundRobin(), TupleRoundRobin(), AdaptiveSplitting(), PidSplitting())
}


def splitting(policy: str | Splitting) -> Splitting:
    """Return the policy of that name, or the policy itself."""
    if not isinstance(policy, str):
        return policy
    if policy not in POLICIES:
        raise ConfigError(f"splitting must be one of {', '.join(POLICIES)}, got {policy!r}")
    return POLICIES[policy]
