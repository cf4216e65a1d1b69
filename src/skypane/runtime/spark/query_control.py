"""The engine and the batches of a query as its handle sees them; they are in this process or beside a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.control.parallelism import Workers
from skypane.metrics import BatchMetrics


class EngineControl(Protocol):
    """The committed state of a query, and requests to its engine."""

    @property
    def checkpoint(self) -> str: ...

    @property
    def workers(self) -> Workers:
        """The workers that the next batch may use."""
        ...

    @property
    def explanation(self) -> str:
        """The reason for the current numbers of workers, in one line."""
        ...

    def history(self, last: int) -> list[dict[str, Any]]:
        """Return the metrics of the last batches as JSON values, oldest first."""
        ...

    def front(self) -> pa.Table:
        """Return the front of a continuous skyline after the last committed batch."""
        ...

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Request other numbers of workers from the next batch on."""
        ...

    @property
    def has_begun(self) -> bool:
        """Whether Spark has begun a batch with rows that is not committed; the next start repeats it."""
        ...

    def drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Answer the open windows in one more batch, if any are open; no batch of Spark may be running."""
        ...

    def publish(self, spark: SparkSession) -> None:
        """Have sinks receive committed rows that wait for a file of several batches, if there are any."""
        ...

    def readmit(
        self, spark: SparkSession, reason: str, repair: Callable[[DataFrame], DataFrame] | None
    ) -> BatchMetrics | None:
        """Process the rows that were rejected for `reason` once more; no batch of Spark may be running."""
        ...


class BatchControl(Protocol):
    """The batches of a running query."""

    @property
    def error(self) -> BaseException | None:
        """The error of a batch that made the query fail."""
        ...

    @property
    def mine(self) -> bool:
        """Whether the caller runs inside the current batch."""
        ...

    @property
    def doing(self) -> str:
        """The current step of the running batch."""
        ...

    def rest(self, timeout: float) -> None:
        """Let no further batch begin, and wait for the running one, at most `timeout` seconds."""
        ...

    def settle(self) -> None:
        """Return when the listeners have the metrics of all committed batches; called when the query has ended or is drained."""
        ...
