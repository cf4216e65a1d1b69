"""Shards of a front as threads of the driver, where they stay from batch to batch; no job is started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from skypane.operators.fronts.shards import ShardPlan


class ShardThreads:
    """Runs the shards of a batch, a thread each: kernels release the interpreter lock.

    busy   seconds that each shard took
    """

    def __init__(self) -> None:
        self.busy: tuple[float, ...] = ()

    def plan(self, shards: int) -> ShardPlan:
        """Return a plan with which `shards` shards stay in this process."""
        self.busy = (0.0,) * shards
        return ShardPlan(shards, in_place=self._run)

    def _run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call the function as map() does, each call in another thread."""

        def timed(*each: Any) -> tuple[Any, float]:
            began = time.perf_counter()
            return function(*each), time.perf_counter() - began

        with ThreadPoolExecutor(len(self.busy), "skypane-shards") as pool:
            results, busy = zip(*pool.map(timed, *arguments), strict=True)
        self.busy = tuple(before + more for before, more in zip(self.busy, busy, strict=True))
        return list(results)
