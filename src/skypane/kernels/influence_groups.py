"""Skyline influence times in many small groups at once: each point is compared with the points of its own group.

influence.py explains the times, and why a scan ends at the youngest dominator. A member is a stored point that may
still be compared, encoded as the number group << 32 | slot. Slots are in order of arrival, so sorted members are
ordered by group and then by arrival. Points and clocks are by slot, as in influence.py. Here 7:10 is the member of
group 7 in slot 10, and slots 10 to 12 are arrivals, `coming`:

    members     3:0  3:5  3:9 | 7:1  7:2  7:8           | 9:4
    coming                                7:10 7:12            9:11
                                                                         1  members_of, _merged
    merged      3:0  3:5  3:9 | 7:1  7:2  7:8 7:10 7:12 | 9:4  9:11
                no arrivals:    group with arrivals
                all stay        |                                        2  _gather: columns of a PointBuffer
                                v
    index       0 ......... 15   16 ........ 31   32 ...... i
    column 0    a block          a block          the last block         small_groups.py compares an arrival i with
    column 1                                                             a block of 16 points at a time
    ...
    names       slots of the points
                                                                         3  _meet: for each arrival i, in order
    index       p                r                q         i
                                 | <------ newest first ----+
                pruned by r      dominates i:     dominated by i:
                before           START of i       END of q, and NaN in its column 0

Members that are pruned or have expired are left out afterwards (4, absorb_members).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.influence import END, START, TIME
from skypane.kernels.simd import NONE, ONE, first_bit, last_bit
from skypane.kernels.small_groups import STEP, PointBuffer, relations, room_for
from skypane.kernels.z_order import ROW_MASK, sorted_by_key
from skypane.types import FloatArray, IntArray

Members: TypeAlias = NDArray[np.uint64]

GROUP: Final = np.uint64(32)
"""The position of the group in the bits of a member."""

_LANES: Final = np.uint64(0xFFFF)

NO_MEMBERS: Final[Members] = np.empty(0, np.uint64)


def empty_points(room: int, d: int) -> FloatArray:
    """Return memory for `room` points of d criteria, with as many columns as in small_groups.py."""
    return np.zeros((room, -(-d // 4) * 4))


@kernel
def members_of(groups: IntArray, begin: int) -> Members:
    """Return the sorted members of n >= 1 points with the given groups, in slots from `begin` on."""
    members = np.empty(groups.shape[0], np.uint64)
    in_order = True
    for i in range(groups.shape[0]):
        members[i] = np.uint64(groups[i]) << GROUP | np.uint64(begin + i)
        in_order &= i == 0 or members[i - 1] < members[i]
    return members if in_order else sorted_by_key(members)


def groups_of(members: Members) -> IntArray:
    """Return the group of each member."""
    return (members >> GROUP).astype(np.int64)


def slots_of(members: Members) -> IntArray:
    """Return the slot of each member."""
    return (members & ROW_MASK).astype(np.int64)


@kernel
def members_at(clocks: IntArray, members: Members, clock: int) -> Members:
    """Return the members that are in the window at the clock, or leave it exactly then."""
    left = np.empty(members.shape[0], np.uint64)
    size = 0
    for member in members:
        left[size] = member
        size += clocks[END, np.int64(member & ROW_MASK)] >= clock
    return left[:size].copy()


@kernel
def move_together(points: FloatArray, clocks: IntArray, rows: IntArray, members: Members) -> None:
    """Move the members to the first slots, in the order of their slots; update the members."""
    places = np.full(rows.shape[0], -1, np.int64)
    for member in members:
        places[np.int64(member & ROW_MASK)] = 0
    size = 0
    for s in range(rows.shape[0]):
        if places[s] < 0:
            continue
        for j in range(points.shape[1]):
            points[size, j] = points[s, j]
        for j in range(3):
            clocks[j, size] = clocks[j, s]
        rows[size] = rows[s]
        places[s] = size
        size += 1
    for i in range(members.shape[0]):
        slot = np.uint64(places[np.int64(members[i] & ROW_MASK)])
        members[i] = members[i] >> GROUP << GROUP | slot


@kernel
def rows_at(clocks: IntArray, rows: IntArray, clock: int) -> IntArray:
    """Return the rows that are on the front once all updates before the clock are applied; `rows` are by slot."""
    out = np.empty(rows.shape[0], np.int64)
    found = 0
    for s in range(rows.shape[0]):
        start, end = clocks[START, s], clocks[END, s]
        out[found] = rows[s]
        found += (start < clock) & (clock <= end) & (start < end)
    return out[:found]


@kernel
def _merged(members: Members, coming: Members) -> Members:
    n, m = members.shape[0], coming.shape[0]
    out = np.empty(n + m, np.uint64)
    i = 0
    j = 0
    for at in range(n + m):
        if j == m or (i < n and members[i] < coming[j]):
            out[at] = members[i]
            i += 1
        else:
            out[at] = coming[j]
            j += 1
    return out


@inlined
def _gather(points: FloatArray, members: Members, span: tuple[int, int], few: PointBuffer) -> None:
    """Copy the points of members[low:high] into columns, four columns at a time."""
    columns, stride, names, _ = few
    low, high = span
    for i in range(high - low):
        s = np.int64(members[low + i] & ROW_MASK)
        names[i] = s
        for j in range(0, points.shape[1], 4):
            at = j * stride + i
            columns[at] = points[s, j]
            columns[at + stride] = points[s, j + 1]
            columns[at + 2 * stride] = points[s, j + 2]
            columns[at + 3 * stride] = points[s, j + 3]


@kernel
def _meet(points: FloatArray, clocks: IntArray, first: int, size: int, window: int, few: PointBuffer) -> int:
    """Compare those of `size` points that are in slots from `first` on with the points before them, youngest first.

    The scan of an arrival ends at its youngest dominator, which has pruned all older points that the arrival dominates.
    Pruned points get NaN in their first column. Return the index of the oldest point in the window when the last
    arrival comes.
    """
    columns, stride, slots, point = few
    oldest = 0
    new = size
    while new > 0 and slots[new - 1] >= first:
        new -= 1
    for i in range(new, size):
        s = slots[i]
        now = clocks[TIME, s]
        while clocks[TIME, slots[oldest]] + window <= now:
            oldest += 1
        for j in range(points.shape[1]):
            point[j] = points[s, j]
        lanes = (ONE << np.uint64(i % STEP)) - ONE  # of the last block
        for block in range(i // STEP, oldest // STEP - 1, -1):
            dominators, gone = relations(columns, stride, block * STEP, point)
            dominators &= lanes
            gone &= lanes
            lanes = _LANES
            while gone != NONE:
                k = block * STEP + first_bit(gone)
                columns[k] = np.nan
                clocks[END, slots[k]] = min(clocks[END, slots[k]], now)
                gone &= gone - ONE
            if dominators != NONE:
                by = slots[block * STEP + last_bit(dominators)]
                clocks[START, s] = max(clocks[START, s], clocks[TIME, by] + window)
                break
    return oldest


@kernel
def absorb_members(points: FloatArray, clocks: IntArray, members: Members, coming: Members, window: int) -> Members:
    """Compare new members, in slots after all others, with the earlier members of their groups; return all that stay.

    points is (n, d), d a multiple of four, zero beyond the criteria; clocks is (3, n), as in influence.PointSlots; both
    are by slot. The starts of new members must be their times, the ends the times + window. Afterwards the starts and
    ends of all slots are correct with respect to these points. All members of groups without arrivals stay; other
    groups lose members that are pruned or have expired.
    """
    merged = _merged(members, coming)
    first = points.shape[0]
    for member in coming:
        first = min(first, np.int64(member & ROW_MASK))
    few = room_for(_longest(merged), points.shape[1])
    left = 0
    low = 0
    for high in range(1, merged.shape[0] + 1):
        if high < merged.shape[0] and merged[high] >> GROUP == merged[low] >> GROUP:
            continue
        if high - low == 1 or np.int64(merged[high - 1] & ROW_MASK) < first:
            for i in range(low, high):
                merged[left] = merged[i]
                left += 1
        else:
            _gather(points, merged, (low, high), few)
            for i in range(_meet(points, clocks, first, high - low, window, few), high - low):
                if few.columns[i] == few.columns[i]:
                    merged[left] = merged[low + i]
                    left += 1
        low = high
    return merged[:left].copy()


@kernel
def _longest(members: Members) -> int:
    """Return the number of members of the largest group."""
    longest = 0
    low = 0
    for high in range(1, members.shape[0] + 1):
        if high == members.shape[0] or members[high] >> GROUP != members[low] >> GROUP:
            longest = max(longest, high - low)
            low = high
    return longest
