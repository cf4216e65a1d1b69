"""The least loaded worker (LLW): the one with the fewest tuples waiting.

Among equals it is the first from a pane's own place in the round on: pane i asks worker i mod n first. The papers leave
that open. Were it always the lowest number, workers that are not needed would get nothing; so they share what there is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def least_loaded(loads: Sequence[int], pane: int, among: Collection[int] | None = None) -> int:
    """Return the LLW for a pane, among these workers or all."""
    workers = range(len(loads)) if among is None else among
    return min(workers, key=lambda worker: (loads[worker], _place(worker, pane, len(loads))))


def room_before(loads: Sequence[int], worker: int, other: int, pane: int) -> int:
    """Return how many tuples `worker` can take, each as the LLW, before `other` is less loaded than it."""
    sooner = _place(worker, pane, len(loads)) < _place(other, pane, len(loads))
    return max(0, loads[other] - loads[worker] + sooner)


def levelled(loads: Sequence[int], among: Collection[int], tuples: int, pane: int) -> dict[int, int]:
    """Return how many of a pane's `tuples` tuples each of these workers gets, if each goes to the LLW among them.

    As water finds its level: the lowest rise to the next, together, until no tuple is left.
    """
    asked = sorted(among, key=lambda worker: _place(worker, pane, len(loads)))
    order = sorted(asked, key=loads.__getitem__)
    given = dict.fromkeys(order, 0)
    if not tuples or not order:
        return given
    filled, total = 1, loads[order[0]]
    while filled < len(order) and loads[order[filled]] * filled - total < tuples:
        total += loads[order[filled]]
        filled += 1
    level, rest = divmod(total + tuples, filled)
    raised = [worker for worker in asked if worker in order[:filled]]
    for worker in raised:
        given[worker] = level - loads[worker]
    for worker in raised[:rest]:
        given[worker] += 1
    return given


def _place(worker: int, pane: int, workers: int) -> int:
    """Return when a pane asks a worker, of equally loaded ones: from 0, its own, to workers - 1."""
    return (worker - pane) % workers
