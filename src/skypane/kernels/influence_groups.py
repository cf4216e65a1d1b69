"""Skyline influence times in many small groups at once: each group's points are a chain, from the youngest to the oldest.

What is computed, and why a scan ends at the youngest dominator, stands in influence.py. Arrivals of one group and one time
that stand side by side meet the chain together: it is gathered once, column by column, and compared 16 points at a time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.influence import END, START, TIME
from skypane.kernels.nested_loops import relation
from skypane.kernels.simd import NONE, ONE, first_bit, floats_ge, floats_gt, last_bit
from skypane.types import FloatArray, IntArray

_STEP: Final = 16
"""Points per compare."""


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


@kernel
def _compare_with(
    columns: FloatArray, room: int, size: int, point: FloatArray, slots: IntArray, clocks: IntArray, now: int
) -> int:
    """Return the youngest of some points, by column, that dominates a point, -1 if none does; those that it dominates go.

    Of the points as far as that one, since what is older and dominated has gone with it.
    """
    d = point.shape[0]
    everything = np.uint16(0xFFFF)
    for block in range((size + _STEP - 1) // _STEP - 1, -1, -1):
        first = block * _STEP
        least = everything  # not less than the point in any column
        most = everything  # not more
        more = np.uint16(0)
        for j in range(d):
            above = floats_gt(columns, j * room + first, point[j])
            least &= floats_ge(columns, j * room + first, point[j])
            more |= above
            most &= ~above
        most &= floats_ge(columns, first, -np.inf)  # without those that are none
        gone = np.uint64(least & more)
        while gone != NONE:
            i = first + first_bit(gone)
            columns[i] = np.nan
            clocks[END, slots[i]] = min(clocks[END, slots[i]], now)
            gone &= gone - ONE
        dominators = np.uint64(most & ~least)
        if dominators != NONE:
            return int(first + last_bit(dominators))
    return -1


@kernel
def _meet_together(chains: Chains, begin: int, end: int, window: int) -> None:
    """Compare the points in slots begin..end - 1, of one group and time, with its chain and one another, and chain them."""
    points, clocks, groups, older, youngest, sizes = chains
    d = points.shape[1]
    g = groups[begin]
    now = clocks[TIME, begin]
    size = 0
    k = youngest[g]
    while k >= 0 and clocks[TIME, k] + window > now:
        size += 1
        k = older[k]
    room = -(-(size + end - begin) // _STEP) * _STEP
    slots = np.empty(room, np.int64)  # from the oldest on
    columns = np.full(d * room, np.nan)  # compares false where there is no point, or no more
    k = youngest[g]
    for i in range(size - 1, -1, -1):
        slots[i] = k
        for j in range(d):
            columns[j * room + i] = points[k, j]
        k = older[k]
    for s in range(begin, end):
        by = _compare_with(columns, room, size, points[s], slots, clocks, now)
        if by >= 0:
            clocks[START, s] = max(clocks[START, s], clocks[TIME, slots[by]] + window)
        slots[size] = s
        for j in range(d):
            columns[j * room + size] = points[s, j]
        size += 1
    left = 0
    before = np.int64(-1)
    for i in range(size):
        if columns[i] == columns[i]:
            older[slots[i]] = before
            before = slots[i]
            left += 1
    youngest[g] = before
    sizes[g] = left


@kernel
def absorb_runs(chains: Chains, begin: int, end: int, window: int) -> None:
    """Do as absorb_chains(); quicker where arrivals of one group and one time stand side by side, several at least."""
    groups = chains.groups
    times = chains.clocks[TIME]
    while begin < end:
        last = begin + 1
        while last < end and groups[last] == groups[begin] and times[last] == times[begin]:
            last += 1
        _meet_together(chains, begin, last, window)
        begin = last
