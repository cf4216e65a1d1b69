"""Costs fitted to timings: seconds = moves a + rows b, with a, b >= 0, by least relative squares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

import numpy as np

from skypane.control.costs import Costs
from skypane.types import ConfigError, FloatArray

_TICK = 1e-9
"""Seconds that no clock tells apart."""

Move: TypeAlias = Literal["job", "exchange", "window"]


@dataclass(frozen=True, slots=True)
class Timing:
    """So many `moves` of one kind, over so many rows in all, took `seconds`."""

    move: Move
    moves: int
    row_count: int
    seconds: float

    def __post_init__(self) -> None:
        if self.moves < 1 or self.row_count < 0 or not np.isfinite(self.seconds):
            raise ConfigError(f"need moves >= 1, rows >= 0 and finite seconds, got {self}")


def fit(timings: Sequence[Timing], measured: str) -> Costs:
    """Return the costs that these timings, some of each kind of move, suggest; `measured` says where they were taken."""
    exchange, exchange_per_row = _parts(timing for timing in timings if timing.move == "exchange")
    window, window_per_row = _parts(timing for timing in timings if timing.move == "window")
    jobs = [timing.seconds / timing.moves for timing in timings if timing.move == "job"]
    if not jobs:
        raise ConfigError("no job was timed")
    return Costs(exchange, exchange_per_row, window, window_per_row, max(0.0, median(jobs)), measured)


def _parts(timings: Iterable[Timing]) -> tuple[float, float]:
    """Return seconds a move and seconds a row."""
    timed = list(timings)
    # The difference of two timings may be below zero, which says nothing but that the move is quick.
    usable = [timing for timing in timed if timing.seconds > _TICK]
    if len(_sizes(timed)) < 2 or not usable:
        raise ConfigError(f"need timings of moves with few rows and with many, got {timed}: measure more rounds")
    # Relative errors: a small move must be met as well as a large one.
    scale = np.maximum([timing.seconds for timing in timed], min(timing.seconds for timing in usable))
    weighted = np.array([(timing.moves, timing.row_count) for timing in timed]) / scale[:, None]
    known = np.array([timing.seconds > _TICK for timing in timed])
    if len(_sizes(usable)) > 1:
        both = _least_squares(weighted[known])
        if both.min() >= 0:
            return float(both[0]), float(both[1])
    one, other = (_least_squares(weighted[known][:, [part]])[0] for part in (0, 1))
    alone = [(max(0.0, float(one)), 0.0), (0.0, max(0.0, float(other)))]
    return min(alone, key=lambda parts: float(np.square(weighted @ parts - known).sum()))


def _sizes(timings: Iterable[Timing]) -> set[float]:
    """Return how many rows a move had, by the different numbers there are."""
    return {timing.row_count / timing.moves for timing in timings}


def _least_squares(weighted: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(weighted, np.ones(len(weighted)))[0], np.float64)
