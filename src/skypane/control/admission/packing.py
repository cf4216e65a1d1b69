"""Bin packing of streams into readers: best fit decreasing, and a lower bound of the number of bins.

Best fit puts an item where it leaves the least room; the caller sorts the items in decreasing order (paper 3, section
2.1). With bins that are partly filled it is the variant of paper 3's Algorithm 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

_ROUNDING = 1e-9
"""Tolerance, as a share of a bin, for the rounding errors of sums of rates."""


def best_fit(items: Iterable[float], free: Mapping[int, float]) -> list[int]:
    """Return, for each item in turn, the bin with the least room in which it fits; stop at an item that fits in none.

    `free` is bin -> room. If the result is shorter than the items, the caller has to place the next item elsewhere.
    """
    bins = sorted((room, number) for number, room in free.items())
    chosen: list[int] = []
    for size in items:
        at = bisect_left(bins, (size * (1 - _ROUNDING), -1))
        if at == len(bins):
            break
        room, number = bins.pop(at)
        insort(bins, (room - size, number))
        chosen.append(number)
    return chosen


def fewest_bins(sizes: Sequence[float], capacity: float) -> int:
    """Return a lower bound of the number of bins for items of these sizes: Martello and Toth's L2.

    It accounts for wasted room: beside an item of more than half a bin, only items that are small enough fit, and the
    others need more bins. An item larger than a bin counts as a full bin.
    """
    small = sorted(min(size, capacity) for size in sizes if size > 0)
    halves = bisect_left(small, capacity / 2 * (1 + _ROUNDING))
    total = 0
    for least in {0.0, *small[:halves]}:
        # Items above capacity - least share a bin with none of the counted items; the other large ones have room.
        alone = len(small) - bisect_left(small, (capacity - least) * (1 + _ROUNDING))
        large = small[halves : len(small) - alone]
        counted = small[bisect_left(small, least) : halves]
        room = len(large) * capacity - math.fsum(large)
        more = math.ceil((math.fsum(counted) - room) / capacity - _ROUNDING)
        total = max(total, alone + len(large) + max(0, more))
    return total
