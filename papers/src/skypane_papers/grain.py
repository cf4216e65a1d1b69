"""Measured cost of a tuple, with block nested loops as in the papers and with our kernels (figures 6, 7 and 14)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.batch_skyline import skyline_indices
from skypane.kernels.kdominance import top_delta_indices
from skypane.kernels.nested_loops import mark_skyline_of_run
from skypane.types import FloatArray, IntArray
from skypane.workloads.content.points import DISTRIBUTIONS, Kind
from skypane_papers.clock import cpu_seconds

DELTA: Final = 100
"""Delta of the top-delta query, as in paper 1, section 4.3.3."""


class Grain(NamedTuple):
    """Microseconds per tuple of each method, and the share of tuples in the skyline."""

    nested_loops: float
    nested_loops_top: float
    kernel: float
    kernel_top: float
    share: float


def nested_loops(points: FloatArray) -> IntArray:
    """Return the rows of the skyline by comparing every point with the result so far."""
    keep = np.zeros(len(points), np.bool_)
    mark_skyline_of_run(points, 0, len(points), np.empty(len(points), np.int64), keep)
    return np.flatnonzero(keep)


def grain(kind: Kind, tuples: int, d: int, seed: int = 0, times: int = 3) -> Grain:
    """Measure the skyline and the top-delta dominant query on a pane of `tuples` points."""
    points = np.ascontiguousarray(DISTRIBUTIONS[kind](tuples, d, np.random.default_rng(seed)))
    columns = np.asfortranarray(points)

    def ranked() -> None:
        top_delta_indices(np.asfortranarray(points[nested_loops(points)]), DELTA, only_skyline=True)

    calls = (
        lambda: nested_loops(points),
        ranked,
        lambda: skyline_indices(columns),
        lambda: top_delta_indices(columns, DELTA),
    )
    micros = [cpu_seconds(call, times) / tuples * 1e6 for call in calls]
    return Grain(micros[0], micros[1], micros[2], micros[3], len(skyline_indices(columns)) / tuples)
