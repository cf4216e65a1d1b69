"""Skyline influence times in many small groups at once: nested loops over each group's own points, one compiled call.

What is computed, and why a scan ends at the youngest dominator, stands in influence.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import dominates
from skypane.types import FloatArray, IntArray


class Runs(NamedTuple):
    """Points, group after group, each group's in order of arrival; run g is [bounds[g], bounds[g + 1])."""

    points: FloatArray  # (n, d)
    times: IntArray
    bounds: IntArray  # (groups + 1,)
    fresh: (
        IntArray  # (groups,): from where on a run's points are new; those before are compared with one another already
    )


@kernel
def absorb_runs(runs: Runs, starts: IntArray, ends: IntArray, window: int) -> None:
    """Compare new points with those before them in their run: raise `starts`, (n,), and lower `ends`, where they must."""
    points, times, bounds, fresh = runs
    longest = 0
    for g in range(fresh.shape[0]):
        longest = max(longest, bounds[g + 1] - bounds[g])
    alive = np.empty(longest, np.int64)  # not pruned, in order of arrival
    for g in range(fresh.shape[0]):
        size = fresh[g] - bounds[g]
        oldest = 0
        for k in range(size):
            alive[k] = bounds[g] + k
        for s in range(fresh[g], bounds[g + 1]):
            now = times[s]
            while oldest < size and times[alive[oldest]] + window <= now:
                oldest += 1
            pruned = 0
            k = size - 1
            while k >= oldest:
                other = alive[k]
                if dominates(points, s, other):
                    ends[other] = min(ends[other], now)
                    alive[k] = -1
                    pruned += 1
                elif dominates(points, other, s):
                    starts[s] = max(starts[s], times[other] + window)
                    break
                k -= 1
            if pruned > 0:
                left = max(k, oldest)
                for at in range(left, size):
                    if alive[at] >= 0:
                        alive[left] = alive[at]
                        left += 1
                size = left
            alive[size] = s
            size += 1
