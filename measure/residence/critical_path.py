"""CPU seconds on the critical path of a step: what it lasts where every shard has a core, and nothing waits.

    driver     this process; of threads that run at the same time, only the slowest
    java       the driver's Java: plans, schedules, and collects
    executor   the executor that used most: its Java, its Python workers, and processes beside it

All that a process does during a step counts, also its compilers and collectors, which run beside the step. The clocks are
those that the kernel has for each process, in nanoseconds.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from measure.processes import parents

_T = TypeVar("_T")


class Spent(NamedTuple):
    """CPU seconds of a step, one after the other."""

    driver: float
    java: float
    executor: float

    @property
    def total(self) -> float:
        """The critical path."""
        return sum(self)


class ShardPool:
    """Runs shards in threads, as the engine does; `beyond` has the CPU seconds of all but the slowest of each call."""

    def __init__(self, shards: int) -> None:
        self._shards, self.beyond = shards, 0.0

    def __call__(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        def timed(*each: Any) -> tuple[Any, float]:
            began = time.thread_time()
            return function(*each), time.thread_time() - began

        with ThreadPoolExecutor(self._shards) as pool:
            results, busy = zip(*pool.map(timed, *arguments), strict=True)
        self.beyond += sum(busy) - max(busy)
        return list(results)


def spent(step: Callable[[], _T], only: Collection[int] | None, pool: ShardPool | None = None) -> tuple[_T, Spent]:
    """Run a step; return what it returns, and its CPU seconds.

    With `only`, the step starts no job, and only this process and those count, each of those as an executor.
    """
    parallel = 0.0 if pool is None else pool.beyond
    before = _clocks(only)
    result = step()
    after = _clocks(only)
    used: dict[int, float] = defaultdict(float)
    for (place, process), seconds in after.items():
        used[place] += seconds - before.get((place, process), 0.0)
    own, java = used.pop(os.getpid()), used.pop(_JAVA, 0.0)
    parallel = 0.0 if pool is None else pool.beyond - parallel
    return result, Spent(own - parallel, java, max(used.values(), default=0.0))


_JAVA = -1
"""Place of the driver's Java."""


def _clocks(only: Collection[int] | None) -> dict[tuple[int, int], float]:
    """Return the CPU seconds of each process, by its place and its number."""
    known, found = {} if only is not None else parents(), {}
    for process in known if only is None else (os.getpid(), *only):
        try:
            found[process if only is not None else _place(process, known), process] = _clock(process)
        except OSError:  # it has ended meanwhile
            continue
    return found


def _place(process: int, known: dict[int, int]) -> int:
    """Return where a process works: here, in the driver's Java, or at the executor that is the child of that Java."""
    own, line = os.getpid(), [process]
    while line[-1] != own:
        line.append(known[line[-1]])
    return own if len(line) == 1 else _JAVA if len(line) == 2 else line[-3]


def _clock(process: int) -> float:
    """Return the CPU seconds of a process; Linux makes the number of its clock from that of the process."""
    return time.clock_gettime((~process << 3) | 2)
