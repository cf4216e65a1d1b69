"""Compiling or loading every kernel before a stream starts, so that its first batch does not pay for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from numba.core import event

from skypane.kernels.groups import skyline_rows_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_rows, top_delta_rows
from skypane.kernels.skyline import skyline_rows
from skypane.types import FloatArray

_USUAL_SECONDS: Final = 15


@dataclass(frozen=True)
class Warmth:
    """What warm() did."""

    seconds: float
    #: Kernels that were compiled, by name; those that were loaded from disk, or there already, are not among them.
    compiled: tuple[str, ...]


def warm(report: Callable[[str], None] | None = None) -> Warmth:
    """Run every kernel once on the array types that workers use; return the seconds taken and what was compiled.

    `report` is called once, before the first compilation, with a line for the user; never if all is cached on disk.
    """
    started = perf_counter()
    with _compilations(report) as compiled:
        _run_all()
    return Warmth(perf_counter() - started, tuple(compiled))


def _run_all() -> None:
    points = _points(4096, 3)
    skyline_rows(points)
    skyline_rows(points[:64])
    skyline_rows(points[:, :2])
    skyline_rows_by_group(points, np.arange(4096) // 4)
    front = _points(2048, 3)
    front[:, 2] = -front[:, 0] - front[:, 1]  # a plane: strong points do not pay, the sort-filter gets everything
    skyline_rows(front)
    dominance_factors(front[:64])
    k_dominant_rows(front, 2)
    top_delta_rows(front, 1)


def _points(n: int, d: int) -> FloatArray:
    """Points spread evenly and without pattern over the unit cube (a Kronecker sequence)."""
    steps = np.sqrt(np.array([2.0, 3.0, 5.0])[:d])
    return np.asfortranarray(np.outer(np.arange(1, n + 1), steps) % 1.0)


class _Watch(event.Listener):  # type: ignore[misc]
    """Notes each compilation as it starts; Numba raises no such event when it loads from its cache."""

    def __init__(self, report: Callable[[str], None] | None) -> None:
        self.compiled: list[str] = []
        self._report = report

    def on_start(self, event: Any) -> None:
        if not self.compiled and self._report is not None:
            self._report(f"compiling kernels (once per installation, about {_USUAL_SECONDS} s)")
        self.compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def _compilations(report: Callable[[str], None] | None) -> Iterator[list[str]]:
    watch = _Watch(report)
    event.register("numba:compile", watch)
    try:
        yield watch.compiled
    finally:
        event.unregister("numba:compile", watch)
