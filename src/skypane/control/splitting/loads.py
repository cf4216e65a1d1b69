"""The least loaded worker (LLW): the one with the fewest tuples waiting; among equals the first."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def least_loaded(loads: Sequence[int]) -> int:
    """Return the LLW."""
    return min(range(len(loads)), key=lambda worker: (loads[worker], worker))


def room_before(loads: Sequence[int], worker: int, other: int) -> int:
    """Return how many tuples `worker` can take, each as the LLW, before `other` is less loaded than it."""
    return max(0, loads[other] - loads[worker] + (worker < other))


def levelled(loads: Sequence[int], among: Collection[int], tuples: int) -> dict[int, int]:
    """Return how many of `tuples` tuples each of these workers gets, if each goes to the LLW among them.

    As water finds its level: the lowest rise to the next, together, until no tuple is left.
    """
    order = sorted(among, key=lambda worker: (loads[worker], worker))
    given = dict.fromkeys(order, 0)
    if not tuples or not order:
        return given
    filled, total = 1, loads[order[0]]
    while filled < len(order) and loads[order[filled]] * filled - total < tuples:
        total += loads[order[filled]]
        filled += 1
    level, rest = divmod(total + tuples, filled)
    raised = sorted(order[:filled])
    for worker in raised:
        given[worker] = level - loads[worker]
    for worker in raised[:rest]:
        given[worker] += 1
    return given
