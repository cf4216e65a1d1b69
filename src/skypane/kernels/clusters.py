"""An order for points of equal time in which the points of a block are near one another, so that its bounds are tight.

A cell of points is cut in two at the block boundary nearest its middle, by the column in which it is widest, and its
parts are cut again: a k-d tree whose leaves are the blocks. Among the pairs of arrivals and blocks that are cut in c
columns, about (3/4)^c may be related by dominance.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import BLOCK
from skypane.kernels.compiled import kernel
from skypane.types import IntArray

_RANKS: Final = 256
_SAMPLE: Final = 64
"""Points of a cell that are sampled to find its widest column."""


@kernel
def clustered(ranks: NDArray[np.uint8], times: IntArray, begin: int) -> IntArray:
    """Return an order of points with (n, d) ranks that keeps the order of `times` and clusters points of equal time.

    The times ascend; the points go into the slots from `begin` on.
    """
    n = times.shape[0]
    order = np.arange(n)
    spare = np.empty(n, np.int64)
    low = 0
    while low < n:
        high = low + 1
        while high < n and times[high] == times[low]:
            high += 1
        _cluster(ranks, order, spare, (low, high), begin)
        low = high
    return order


@kernel
def _cluster(ranks: NDArray[np.uint8], order: IntArray, spare: IntArray, span: tuple[int, int], begin: int) -> None:
    """Reorder order[span] into cells."""
    cells = [span]
    while len(cells) > 0:
        low, high = cells.pop()
        cut = _cut(begin + low, begin + high) - begin
        if cut <= low:
            continue
        _divide(ranks, order[low:high], spare, cut - low)
        cells.append((low, cut))
        cells.append((cut, high))


@kernel
def _cut(low: int, high: int) -> int:
    """Return the block boundary between slots `low` and `high` that is nearest to their middle; 0 if none exists."""
    cut = ((low + high) // 2 + BLOCK // 2) // BLOCK * BLOCK
    if cut >= high:
        cut -= BLOCK
    if cut <= low:
        cut += BLOCK
    return cut if low < cut < high else 0


@kernel
def _divide(ranks: NDArray[np.uint8], cell: IntArray, spare: IntArray, size: int) -> None:
    """Move the `size` points that are least in a cell's widest column to its front."""
    column = _widest(ranks, cell)
    counts = np.zeros(_RANKS, np.int64)
    for i in cell:
        counts[ranks[i, column]] += 1
    middle = 0  # the rank whose points are divided between both parts
    below = 0
    while below + counts[middle] < size:
        below += counts[middle]
        middle += 1
    first = last = 0
    equal = size - below
    for i in cell:
        rank = ranks[i, column]
        among = rank == middle and equal > 0
        equal -= among
        goes = rank < middle or among
        cell[first] = i  # without a branch, which would be mispredicted half the time
        spare[last] = i
        first += goes
        last += not goes
    cell[first:] = spare[:last]


@kernel
def _widest(ranks: NDArray[np.uint8], cell: IntArray) -> int:
    """Return the column in which a sample of a cell's points has the largest range."""
    d = ranks.shape[1]
    least = ranks[cell[0]].copy()
    most = least.copy()
    for i in cell[:: cell.shape[0] // _SAMPLE + 1]:
        for j in range(d):
            least[j] = min(least[j], ranks[i, j])
            most[j] = max(most[j], ranks[i, j])
    return int(np.argmax(most - least))
