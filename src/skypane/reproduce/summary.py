"""What a simulated run comes to once the laws have settled: means over its intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skypane.control.monitoring import Period
from skypane.runtime.sim.simulation import Sampled


def mean(shown: Sequence[Sampled], name: str) -> float:
    """Return the mean of a figure over the intervals that know it; NaN if none does."""
    values = np.array([getattr(sampled, name) for sampled in shown], float)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def unbalance(periods: Sequence[Period]) -> float:
    """Return the busy time of the most loaded worker over that of the least loaded; all with the same workers."""
    busy = np.sum([period.busy for period in periods], axis=0)
    return float(busy.max() / busy.min()) if busy.min() > 0 else float("inf")


def sustained(periods: Sequence[Period]) -> float:
    """Return what was processed as a share of what came, at most 1."""
    came = sum(sum(period.scheduled) for period in periods)
    done = sum(sum(period.processed) for period in periods)
    return min(1.0, done / came) if came else 1.0
