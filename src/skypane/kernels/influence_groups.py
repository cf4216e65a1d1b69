"""Skyline influence times in many small groups at once: each group's points are a chain, from the youngest to the oldest.

What is computed, and why a scan ends at the youngest dominator, stands in influence.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.influence import END, START, TIME
from skypane.kernels.nested_loops import relation
from skypane.types import FloatArray, IntArray


class Chains(NamedTuple):
    """Points of all groups in order of arrival; a link is the slot of the next older point of the group, -1 where there is none."""

    points: FloatArray  # (room, d)
    clocks: IntArray  # (3, room), as in influence.Slots
    groups: IntArray  # (room,): from 0 on
    older: IntArray  # (room,): links
    youngest: IntArray  # (groups,): links into the chains
    sizes: IntArray  # (groups,): points in the chains, at most


@kernel
def chain(chains: Chains, begin: int, end: int) -> None:
    """Put the points in slots begin..end - 1, which are compared with one another already, at the young ends of their chains."""
    for s in range(begin, end):
        g = chains.groups[s]
        chains.older[s] = chains.youngest[g]
        chains.youngest[g] = s
        chains.sizes[g] += 1


@kernel
def absorb_chains(chains: Chains, begin: int, end: int, window: int) -> None:
    """Compare the points in slots begin..end - 1 with those of their group before them, and chain them.

    Their groups and times are there, in order of time; starts are the times, ends the times + window. Afterwards the starts
    and ends of all slots are right, as far as the points up to `end` tell. What is pruned or has expired leaves its chain.
    """
    points, clocks, groups, older, youngest, sizes = chains
    for s in range(begin, end):
        g = groups[s]
        now = clocks[TIME, s]
        before = np.int64(-1)  # the one before k in the chain
        k = youngest[g]
        seen = 0
        while k >= 0:
            if clocks[TIME, k] + window <= now:
                sizes[g] = seen
                if before < 0:
                    youngest[g] = -1
                else:
                    older[before] = -1
                break
            which = relation(points, s, k)
            if which < 0:
                clocks[START, s] = max(clocks[START, s], clocks[TIME, k] + window)
                break
            if which > 0:
                clocks[END, k] = min(clocks[END, k], now)
                sizes[g] -= 1
                if before < 0:
                    youngest[g] = older[k]
                else:
                    older[before] = older[k]
            else:
                before = k
                seen += 1
            k = older[k]
        older[s] = youngest[g]
        youngest[g] = s
        sizes[g] += 1
