"""Streams into readers as items into bins: best fit decreasing, and the fewest bins that there can be.

Best fit puts an item where it leaves the least room; decreasing is the caller's order of the items (paper 3, section
2.1). With bins that hold something already it is the variant of paper 3's Algorithm 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

_ROUNDING = 1e-9
"""Share of a bin by which sums of rates may miss it: rates are sums of floats."""


def best_fit(items: Iterable[float], free: Mapping[int, float]) -> list[int]:
    """Return, for each item in turn, the bin with the least room of those in which it fits; end at one that fits none.

    `free` is bin -> room. The caller, who gets fewer bins than items, finds another place for the next one.
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
    """Return a lower bound of the bins that items of these sizes need: Martello and Toth's L2.

    It counts the room that must be wasted: beside an item of more than half a bin, what is left of the bin can only
    take items as small, and the rest has to go elsewhere. An item larger than a bin counts as a whole one.
    """
    small = sorted(min(size, capacity) for size in sizes if size > 0)
    halves = bisect_left(small, capacity / 2 * (1 + _ROUNDING))
    total = 0
    for least in {0.0, *small[:halves]}:
        # Items above capacity - least share a bin with none of those that count; the other large ones have room.
        alone = len(small) - bisect_left(small, (capacity - least) * (1 + _ROUNDING))
        large = small[halves : len(small) - alone]
        counted = small[bisect_left(small, least) : halves]
        room = len(large) * capacity - math.fsum(large)
        more = math.ceil((math.fsum(counted) - room) / capacity - _ROUNDING)
        total = max(total, alone + len(large) + max(0, more))
    return total
