"""Costs fitted to timings: seconds = moves a + rows b, with a, b >= 0, by least relative squares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Literal, TypeAlias

import numpy as np

from skypane.control.costs import Costs
from skypane.types import BoolArray, ConfigError, FloatArray

_TICK = 1e-9
"""Resolution of the clock, in seconds."""

Move: TypeAlias = Literal[
    "job", "exchange", "window", "front", "group", "shard", "comparison", "division", "threads", "shard threads"
]


@dataclass(frozen=True, slots=True)
class Timing:
    """Duration of `moves` operations of one kind on `row_count` rows in all; in a front, a row and its pairs."""

    move: Move
    moves: int
    row_count: int
    seconds: float

    def __post_init__(self) -> None:
        if self.moves < 1 or self.row_count < 0 or not np.isfinite(self.seconds):
            raise ConfigError(f"need moves >= 1, rows >= 0 and finite seconds, got {self}")


def fit(timings: Sequence[Timing], measured: str) -> Costs:
    """Return the costs fitted to these timings, which must cover all kinds; `measured` names where they were taken."""
    fixed: tuple[Move, ...] = ("job", "threads", "shard threads")
    job, threads, shard_threads = (_fixed(timings, move) for move in fixed)
    moves: tuple[Move, ...] = ("exchange", "window", "front", "group", "shard", "comparison", "division")
    exchange, window, front, group, shard, comparison, division = (
        _parts(timing for timing in timings if timing.move == move) for move in moves
    )
    return Costs(
        exchange=exchange[0],
        exchange_per_row=exchange[1],
        window=window[0],
        window_per_row=window[1],
        job=job,
        front_per_row=front[0],
        front_per_pair=front[1],
        group_per_row=group[1],
        shard_per_row=shard[1],
        compared_per_row=comparison[1],
        divided_per_row=division[1],
        threads=threads,
        shard_threads=shard_threads,
        measured=measured,
    )


def _fixed(timings: Iterable[Timing], move: Move) -> float:
    """Return the seconds per move, whatever its rows."""
    seconds = [timing.seconds / timing.moves for timing in timings if timing.move == move]
    if not seconds:
        raise ConfigError(f"timings must contain a move of kind {move}, got none")
    return max(0.0, median(seconds))


def _parts(timings: Iterable[Timing]) -> tuple[float, float]:
    """Return the seconds per move and the seconds per row."""
    timed = list(timings)
    # The difference of two timings may be negative, which only shows that the move is fast.
    usable = [timing for timing in timed if timing.seconds > _TICK]
    if len(_sizes(timed)) < 2 or not usable:
        raise ConfigError(f"need timings of moves with few rows and with many, got {timed}: measure more rounds")
    # Relative errors, so that small moves are fitted as well as large ones.
    scale = np.maximum([timing.seconds for timing in timed], min(timing.seconds for timing in usable))
    weighted = np.array([(timing.moves, timing.row_count) for timing in timed]) / scale[:, None]
    known = np.array([timing.seconds > _TICK for timing in timed])
    if len(_sizes(usable)) > 1:
        both = _least_squares(weighted[known])
        if min(both) >= 0:
            return float(both[0]), float(both[1])
    moves, rows = (_alone(weighted[known][:, part]) for part in (0, 1))
    alone = ((moves, Fraction()), (Fraction(), rows))
    one, other = min(alone, key=lambda parts: _squares_left(weighted, known, parts))
    return float(one), float(other)


def _sizes(timings: Iterable[Timing]) -> set[float]:
    """Return the distinct numbers of rows per move."""
    return {timing.row_count / timing.moves for timing in timings}


def _least_squares(weighted: FloatArray) -> tuple[Fraction, Fraction]:
    """Return the factors with which the sum of the two columns is nearest to 1, by the normal equations.

    The columns must not be parallel. Fractions make the result exact; LAPACK's last bits differ between CPUs.
    """
    moves, rows = _exact(weighted[:, 0]), _exact(weighted[:, 1])
    a, b, c = _dot(moves, moves), _dot(moves, rows), _dot(rows, rows)
    return (sum(moves) * c - sum(rows) * b) / (a * c - b * b), (sum(rows) * a - sum(moves) * b) / (a * c - b * b)


def _alone(column: FloatArray) -> Fraction:
    """Return the factor with which this column alone is nearest to 1; 0 for a column of zeros."""
    numbers = _exact(column)
    return sum(numbers) / (_dot(numbers, numbers) or Fraction(1))


def _squares_left(weighted: FloatArray, known: BoolArray, parts: tuple[Fraction, Fraction]) -> Fraction:
    """Return the residual sum of squares of these factors."""
    moves, rows = _exact(weighted[:, 0]), _exact(weighted[:, 1])
    left = [
        move * parts[0] + row * parts[1] - int(one) for move, row, one in zip(moves, rows, known.tolist(), strict=True)
    ]
    return _dot(left, left)


def _exact(numbers: FloatArray) -> list[Fraction]:
    return [Fraction(number) for number in numbers.tolist()]


def _dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction())
