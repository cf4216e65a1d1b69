"""Handles of queries without Spark, whose batches a test commits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.batch_listeners import BatchListeners
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.input_status import InputStatus


class Ledger:
    """What a handle reads of its engine: the metrics of the batches that a test commits."""

    checkpoint = "/checkpoint"

    def __init__(self, *committed: BatchMetrics) -> None:
        self.listeners = BatchListeners()
        self._committed = list(committed)

    def commit(self, metrics: BatchMetrics) -> None:
        self._committed.append(metrics)
        self.listeners(metrics)

    def history(self, last: int) -> list[dict[str, Any]]:
        return [metrics.to_json() for metrics in self._committed[-last:]]


class Query:
    """A query of Spark, which says by a function whether it runs."""

    name = "watched"

    def __init__(self, runs: Callable[[], bool] = lambda: True) -> None:
        self._runs = runs

    @property
    def isActive(self) -> bool:
        return self._runs()


def handle_of(ledger: Ledger, runs: Callable[[], bool] = lambda: True) -> StreamHandle:
    """Return a handle of a client of Spark Connect, whose errors are those of calls."""
    client, unused = SimpleNamespace(sparkContext=None), cast("Any", None)
    return StreamHandle(
        cast("Any", Query(runs)), cast("Any", ledger), unused, cast("Any", client), InputStatus(), ledger.listeners
    )
