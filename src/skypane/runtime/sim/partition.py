"""The exact result of a partition: its current skyline, computed by block nested loops, as a linked list of tuples.

The array `behind` holds the next tuple of the same result for each tuple, -1 at the end; a result is referred to by its
first tuple.
"""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import relation
from skypane.types import FloatArray, IntArray


@kernel
def inserted(points: FloatArray, behind: IntArray, first: int, item: int) -> tuple[int, int]:
    """Insert tuple `item` into the result that begins with `first`; return its new first tuple, and its growth.

    The (n, d) points are by tuple number; smaller is better. Equal points are all kept.
    """
    grown = 0
    before = -1
    member = first
    while member >= 0:
        found = relation(points, member, item)
        if found > 0:  # no member was removed before: members do not dominate each other, and dominance is transitive
            return first, 0
        next_member = behind[member]
        if found < 0:
            grown -= 1
            if before < 0:
                first = next_member
            else:
                behind[before] = next_member
        else:
            before = member
        member = next_member
    behind[item] = first
    return item, grown + 1


@kernel
def members(behind: IntArray, first: int, count: int) -> IntArray:
    """Return the `count` tuples of the result that begins with `first`."""
    found = np.empty(count, np.int64)
    for at in range(count):
        found[at] = first
        first = behind[first]
    return found
