"""Means of a simulated run over its sampling intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skypane.control.monitoring import SamplingPeriod
from skypane.runtime.sim.simulation import SimulationSample


def mean(shown: Sequence[SimulationSample], name: str) -> float:
    """Return the mean of an attribute over the samples in which it is not NaN; NaN if there are none."""
    values = np.array([getattr(sampled, name) for sampled in shown], float)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def unbalance(periods: Sequence[SamplingPeriod]) -> float:
    """Return the busy time of the most loaded worker over that of the least loaded; all periods have the same ones."""
    busy = np.sum([period.busy for period in periods], axis=0)
    return float(busy.max() / busy.min()) if busy.min() > 0 else float("inf")


def sustained(periods: Sequence[SamplingPeriod]) -> float:
    """Return the share of the arrived tuples that was processed, at most 1."""
    came = sum(sum(period.scheduled) for period in periods)
    done = sum(sum(period.processed) for period in periods)
    return min(1.0, done / came) if came else 1.0
