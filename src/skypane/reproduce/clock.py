"""CPU seconds of a call."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time


def cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU time of this thread that a call takes, after one that compiles what it needs."""
    work()
    return min(_once(work) for _ in range(times))


def _once(work: Callable[[], object]) -> float:
    before = thread_time()
    work()
    return thread_time() - before
