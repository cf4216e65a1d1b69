"""Learn what windows cost from the busy seconds of the runs of the last batches.

The seconds of each count of Work are those that explain the measured seconds best: least squares, none of them negative,
drawn towards the calibrated costs, which are scaled to the measured seconds, where measurements do not separate counts.
Older batches count less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from skypane.control.costs import Costs
from skypane.control.measurements import BatchMeasurements, PieceWork
from skypane.control.placement import SHARED_MERGES
from skypane.control.window_work import Coefficients, WindowCosts, Work, dot
from skypane.snapshots import JsonState

KEPT: Final = 0.8
"""Weight of what the batches before have shown, after one more batch with runs."""
TRUST: Final = 0.05
"""Weight of the calibrated cost of a count, as a share of what the measurements say of this count alone."""
FORGETTING: Final = 0.99
"""Weight of the learned share of the hottest key, after a batch that shows nothing of it, so that it is tried again."""
HELD: Final = 0.1
"""Calibrated cost of a row in an answer, as a share of that of a merge."""
LEAST: Final = 1e-3
"""Seconds below which a measurement is as inexact as one of this length."""
_SWEEPS: Final = 100
_COUNTS: Final = len(Work._fields)


@dataclass(frozen=True, slots=True)
class LearnedWindows(JsonState):
    """Sums over the measured runs, by which least squares are solved.

    products  of each two counts, row by row
    seconds   of each count and the measured seconds
    runs      measured runs; older ones count less
    hot       share of the work that the hottest key has
    """

    products: tuple[float, ...] = (0.0,) * (_COUNTS * _COUNTS)
    seconds: tuple[float, ...] = (0.0,) * _COUNTS
    runs: float = 0.0
    hot: float = 0.0


def calibrated(costs: Costs, overlap: int, *, compared_once: bool) -> Coefficients:
    """Return the seconds of each count by the calibrated costs."""
    merged = min(overlap, SHARED_MERGES) * costs.window_per_row
    return Work(
        runs=costs.window,
        windows=costs.window,
        added=min(merged, costs.compared_per_row) if compared_once else merged,
        held=HELD * costs.window_per_row,
        pairs=costs.front_per_pair if compared_once else 0.0,
        divided=costs.divided_per_row,
    )


def observed(state: LearnedWindows, measured: BatchMeasurements) -> LearnedWindows:
    """Return the state after a batch; the first batch after a start shows how workers start, and nothing else."""
    if measured.interval is None or not measured.pieces:
        return state
    runs = [tuple(parts) for _, parts in groupby(sorted(measured.pieces, key=_place), lambda piece: _place(piece)[:2])]
    products, seconds = ([KEPT * value for value in values] for values in (state.products, state.seconds))
    for parts in runs:
        work, busy = parts[0].work, sum(piece.busy for piece in parts) / len(parts)
        weight = 1.0 / (busy + LEAST)
        for row, count in enumerate(work):
            seconds[row] += weight * count * busy
            for column, other in enumerate(work):
                products[row * _COUNTS + column] += weight * count * other
    hot = _hot(runs)
    return replace(
        state,
        products=tuple(products),
        seconds=tuple(seconds),
        runs=KEPT * state.runs + len(runs),
        hot=state.hot * FORGETTING if hot is None else (state.hot + hot) / 2,
    )


def learned(state: LearnedWindows, base: Coefficients) -> WindowCosts:
    """Return the costs that the runs have shown; the calibrated ones, if there are none yet."""
    rows = [state.products[at : at + _COUNTS] for at in range(0, len(state.products), _COUNTS)]
    explained = dot(base, [dot(row, base) for row in rows])
    scale = dot(base, state.seconds) / explained if explained > 0 else 1.0
    drawn = [scale * cost for cost in base]
    found = list(drawn)
    for _ in range(_SWEEPS):
        for at, row in enumerate(rows):
            own = row[at]
            if own > 0:
                rest = state.seconds[at] - dot(row, found) + own * found[at]
                found[at] = max(0.0, (rest + TRUST * own * drawn[at]) / (own * (1.0 + TRUST)))
    return WindowCosts(Work(*found), state.hot)


def figures_of(costs: WindowCosts) -> Mapping[str, float]:
    """Return the costs by name, for decisions."""
    return {**{f"seconds_{name}": value for name, value in costs.each._asdict().items()}, "hot": costs.hot}


def _place(piece: PieceWork) -> tuple[int, int, int]:
    return piece.begin, piece.end, piece.part


def _hot(runs: Iterable[Sequence[PieceWork]]) -> float | None:
    """Return the share of the hottest key in the run that took longest; None if no run was divided.

    If a key has the share h, and the others are even, its part has h + (1 - h) / parts.
    """
    divided = [[piece.busy for piece in parts] for parts in runs if len(parts) > 1]
    if not divided or not any(map(sum, divided)):
        return None
    busy = max(divided, key=sum)
    even = 1.0 / len(busy)
    return (max(busy) / sum(busy) - even) / (1.0 - even)
