"""The timer of the engine, its only use of a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Timer:
    """Measures the wall time of each step; a step may have several parts."""

    def __init__(self, entered: Callable[[str], None] = lambda _: None) -> None:
        """Call `entered` with the name of each step before it begins."""
        self._entered = entered
        self.started_at = time.time()
        self.seconds: dict[str, float] = {}
        self.began = time.perf_counter()

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        self._entered(step)
        began = time.perf_counter()
        yield
        self.seconds[step] = round(self.seconds.get(step, 0.0) + time.perf_counter() - began, 6)

    def stop(self) -> dict[str, float]:
        """Return the seconds of each step so far, and the total until now."""
        return {"total": round(time.perf_counter() - self.began, 6), **self.seconds}
