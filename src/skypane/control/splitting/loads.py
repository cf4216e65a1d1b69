"""The least loaded worker (LLW): the one with the fewest tuples waiting.

Ties are broken round robin, starting at worker i mod n for pane i. The papers do not define the tie-break. With the
lowest number, workers that are not needed would get no tuples; with this order all workers share them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def least_loaded(loads: Sequence[int], pane: int, among: Collection[int] | None = None) -> int:
    """Return the LLW for a pane, among the given workers or all."""
    workers = range(len(loads)) if among is None else among
    return min(workers, key=lambda worker: (loads[worker], _rank(worker, pane, len(loads))))


def room_before(loads: Sequence[int], worker: int, other: int, pane: int) -> int:
    """Return how many tuples `worker` can take as the LLW before `other` becomes less loaded."""
    sooner = _rank(worker, pane, len(loads)) < _rank(other, pane, len(loads))
    return max(0, loads[other] - loads[worker] + sooner)


def levelled(loads: Sequence[int], among: Collection[int], tuples: int, pane: int) -> dict[int, int]:
    """Return how many of a pane's `tuples` tuples each of these workers gets if each tuple goes to the LLW among them.

    The loads fill up like water: the lowest rise together to the next one, until no tuple is left.
    """
    ranked = sorted(among, key=lambda worker: _rank(worker, pane, len(loads)))
    order = sorted(ranked, key=loads.__getitem__)
    given = dict.fromkeys(order, 0)
    if not tuples or not order:
        return given
    filled, total = 1, loads[order[0]]
    while filled < len(order) and loads[order[filled]] * filled - total < tuples:
        total += loads[order[filled]]
        filled += 1
    level, rest = divmod(total + tuples, filled)
    raised = [worker for worker in ranked if worker in order[:filled]]
    for worker in raised:
        given[worker] = level - loads[worker]
    for worker in raised[:rest]:
        given[worker] += 1
    return given


def _rank(worker: int, pane: int, workers: int) -> int:
    """Return the position of a worker in a pane's tie-break order, from 0 to workers - 1."""
    return (worker - pane) % workers
