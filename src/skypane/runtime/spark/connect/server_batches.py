"""The function of foreachBatch that travels to the server: it makes the engine there, and passes it each batch.

Spark Connect runs the function in a Python process beside the server, with a session of its own, from the start of the
query to its end. When the query stops, the server ends that process at once, in a batch or not: for the ledger this is
a driver that was killed. A restart of the process is a restart of the driver.
"""

from __future__ import annotations

import json
import logging
import time
from concurrent.futures import wait
from functools import cached_property
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane.control.parallelism import Workers
from skypane.operators.query import kernel_families
from skypane.runtime.background import in_background
from skypane.runtime.kernels_ahead import prepare_kernels
from skypane.runtime.spark.batch_lifecycle import abandoned, failure
from skypane.runtime.spark.connect.batch_requests import BatchRequests, PendingRequests
from skypane.runtime.spark.connect.server_watch import end_with_server
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.input_status import InputStatus
from skypane.types import ConfigError, SkypaneError

log = logging.getLogger(__name__)

_LOOK = 0.1
"""Seconds between looks at a query that is stopping."""
_LOOK_FOR_STOP = 0.25
"""Seconds between looks, in a pause, whether the client has requested a stop."""


class ServerBatches:
    """Passes batches to the engine of `description`, which is made with the first one; only the description travels.

    session  the session in which the query was started; that of a batch is a copy of it, and knows no queries
    """

    def __init__(self, description: EngineDescription, session: SparkSession | None = None) -> None:
        self._description = description
        self._session = session
        self._engine: Engine | None = None
        self._requests = BatchRequests(description.checkpoint)

    def __reduce__(self) -> tuple[Any, ...]:
        return ServerBatches.arrived, (self._description,)

    @classmethod
    def arrived(cls, description: EngineDescription) -> Self:
        """Return the function in the process that runs it, where the query's session is the active one."""
        return cls(description, SparkSession.getActiveSession())

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        pending = self._requests.pending()
        if pending.stop:
            self._stop()
            raise abandoned(batch_id)
        try:
            self._run(rows, batch_id, pending)
        except BaseException as error:  # not only Exception: the process would end without a reason
            log.error("batch %d failed", batch_id, exc_info=error)  # noqa: TRY400 - the server's log gets the trace
            raise failure(batch_id, error) from None

    def _run(self, rows: DataFrame, batch_id: int, pending: PendingRequests) -> None:
        engine = self._made(rows.sparkSession)
        if pending.workers is not None:
            _scale(engine, pending.workers)
        engine(rows, batch_id)
        if pending.names:
            self._requests.remove(pending.names)
        while (left := engine.pause) > 0 and not self._requests.pending().stop:
            time.sleep(min(left, _LOOK_FOR_STOP))  # the request is a file, which nobody announces

    def _made(self, spark: SparkSession) -> Engine:
        """Return the engine, which takes over the checkpoint when it is made."""
        if self._engine is None:
            end_with_server()
            prepare_kernels(kernel_families(self._description.settings.plan.queries))
            inputs = InputStatus()
            inputs.query = self._query
            engine = self._description.engine(inputs=inputs)
            engine.finish_drain(spark)
            self._engine = engine
        return self._engine

    def _stop(self) -> None:
        """Stop the query, which ends this process; return if that has ended it without an interrupt."""
        query = self._query
        if query is None:
            raise SkypaneError("the query is to stop, and the server does not know it")
        stopped = in_background(query.stop)
        while not wait([stopped], _LOOK).done and query.isActive:
            pass

    @cached_property
    def _query(self) -> StreamingQuery | None:
        """The query that runs these batches; Spark writes its id into the checkpoint."""
        if self._session is None:
            return None
        noted = json.loads(DocumentStore.at(self._description.checkpoint).read("metadata"))
        return self._session.streams.get(noted["id"])


def _scale(engine: Engine, workers: Workers) -> None:
    """Pass a request for workers to the engine; one that a policy's decision has made invalid is logged."""
    try:
        engine.scale(plq=workers.plq, wlq=workers.wlq)
    except ConfigError as error:
        log.warning("a request for workers is left out: %s", error)
