"""The batches of a query as a client of Spark Connect sees them: the server runs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane.runtime.background import in_background
from skypane.runtime.spark.batch_lifecycle import POLL, is_idle
from skypane.runtime.spark.connect.batch_requests import BatchRequests
from skypane.runtime.spark.connect.server_call import from_server
from skypane.runtime.spark.connect.server_errors import cause_in
from skypane.types import SkypaneError


class RemoteBatches:
    """Lets a query rest before it is stopped; see BatchControl.

    settled  called when the query has ended, and after each drain and readmission
    """

    #: no batch runs in this process
    mine = False

    def __init__(
        self, query: StreamingQuery, spark: SparkSession, checkpoint: str, settled: Callable[[], None] = lambda: None
    ) -> None:
        self._query = query
        self._spark = spark
        self._requests = BatchRequests(checkpoint)
        self._settled = settled

    @property
    def error(self) -> BaseException | None:
        """The error of the batch that made the query fail, whose trace is in the server's log; None for Spark's own."""
        error = self._query.exception()
        found = None if error is None else cause_in(error)
        return None if found is None else SkypaneError(found)

    @property
    def doing(self) -> str:
        return f"the server says: {self._query.status['message']}"

    def rest(self, timeout: float) -> None:
        """Request that the batch after the running one stops the query; return when it has, or when no batch runs."""
        until = time.monotonic() + timeout
        requested = in_background(lambda: from_server(self._spark, self._requests.stop))
        wait([requested], timeout)
        while time.monotonic() < until and not is_idle(self._query, time.sleep):
            time.sleep(POLL)

    def settle(self) -> None:
        self._settled()
