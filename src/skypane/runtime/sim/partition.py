"""A partition's result kept tuple by tuple: its skyline so far, as block nested loops have it, in a chain of tuples.

Of each tuple the array `behind` knows the next one of the same result, -1 at the end; a result is known by its first.
"""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import relation
from skypane.types import FloatArray, IntArray


@kernel
def inserted(points: FloatArray, behind: IntArray, first: int, item: int) -> tuple[int, int]:
    """Insert a tuple into the result that begins with `first`; return the first one now, and by how many it has grown.

    The (n, d) points are tuples by their number; smaller is better. Equal points are all kept.
    """
    grown = 0
    before = -1
    member = first
    while member >= 0:
        found = relation(points, member, item)
        if found > 0:  # it dominates none either, since what a member dominates is none
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
    """Return the tuples of a result of `count` that begins with `first`."""
    found = np.empty(count, np.int64)
    for at in range(count):
        found[at] = first
        first = behind[first]
    return found
