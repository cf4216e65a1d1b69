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

Move: TypeAlias = Literal["job", "exchange", "window", "front", "group", "shard"]


@dataclass(frozen=True, slots=True)
class Timing:
    """So many `moves` of one kind, over so many rows in all, took `seconds`; of a front, a move is a row, with its pairs."""

    move: Move
    moves: int
    row_count: int
    seconds: float

    def __post_init__(self) -> None:
        if self.moves < 1 or self.row_count < 0 or not np.isfinite(self.seconds):
            raise ConfigError(f"need moves >= 1, rows >= 0 and finite seconds, got {self}")


def fit(timings: Sequence[Timing], measured: str) -> Costs:
    """Return the costs that these timings, some of each kind of move, suggest; `measured` says where they were taken."""
    jobs = [timing.seconds / timing.moves for timing in timings if timing.move == "job"]
    if not jobs:
        raise ConfigError("no job was timed")
    moves: tuple[Move, ...] = ("exchange", "window", "front", "group", "shard")
    exchange, window, front, group, shard = (
        _parts(timing for timing in timings if timing.move == move) for move in moves
    )
    return Costs(
        exchange=exchange[0],
        exchange_per_row=exchange[1],
        window=window[0],
        window_per_row=window[1],
        job=max(0.0, median(jobs)),
        front_per_row=front[0],
        front_per_pair=front[1],
        group_per_row=group[1],
        shard_per_row=shard[1],
        measured=measured,
    )


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
