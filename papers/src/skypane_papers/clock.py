"""CPU seconds of a call."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time


def cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU time of this thread over `times` calls, after a first call that compiles kernels."""
    work()
    return min(_once(work) for _ in range(times))


def _once(work: Callable[[], object]) -> float:
    before = thread_time()
    work()
    return thread_time() - before
