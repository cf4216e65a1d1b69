"""The handle of a running query: wait for it, stop it, look at it, change its workers."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane import notebook
from skypane.metrics import BatchMetrics
from skypane.naming import shortened
from skypane.runtime.background import in_background
from skypane.runtime.spark.causes import cause
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.told import InputsTold
from skypane.runtime.spark.turns import Turns
from skypane.types import SkypaneError

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds that a stop waits for the batch under way."""


class StreamHandle:
    """A running query: wait for it, stop it, look at it, change its workers."""

    def __init__(
        self, query: StreamingQuery, engine: Engine, turns: Turns, spark: SparkSession, told: InputsTold
    ) -> None:
        self.query = query
        #: whether Ctrl-C has ended it
        self.interrupted = False
        self._engine = engine
        self._turns = turns
        self._spark = spark
        self._told = told

    def __repr__(self) -> str:
        """The query in one line: whether it runs, and its last batch."""
        return f"<skypane query, {'; '.join(f'{name}: {value}' for name, value in self._said())}>"

    def _repr_html_(self) -> str:
        return notebook.table("skypane query", self._said())

    def _said(self) -> list[tuple[str, str]]:
        try:
            status, last = self.status, self.recent_metrics(1)
        except SkypaneError as error:  # a cell shows a query whose Java has gone, too
            return [("state", str(error)), ("checkpoint", self._engine.checkpoint)]
        state = "running" if status["active"] else "stopped" if status["error"] is None else "failed"
        workers = self._engine.workers
        said = [
            ("state", state),
            # Of a query that has failed, Spark's message goes on with a trace.
            ("doing" if status["active"] else "at last", shortened(status["message"].partition("\n")[0])),
            ("last batch", str(last[0]) if last else "none yet"),
            ("workers", f"{workers.plq} for panes, {workers.wlq} for windows"),
            ("checkpoint", self._engine.checkpoint),
        ]
        return said if status["error"] is None else [*said, ("error", status["error"])]

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, at most `timeout` seconds; return whether it has.

        Ctrl-C meanwhile stops the query as stop() does, which ends the wait; a second one does not wait for the batch.
        Raises SkypaneError, with the cause in one line, if the query failed; its __cause__ has all of the trace.
        """
        known = self.interrupted
        try:
            with self.interruptible(), java_there(self._spark):
                # Spark takes fractions of a second, whatever its annotation says, but no zero.
                wait = None if timeout is None else max(timeout, 0.001)
                ended = in_background(lambda: self.query.awaitTermination(wait)).result()  # type: ignore[arg-type]
        except StreamingQueryException as error:
            if self._turns.error is None:
                where = f"in Spark's part, with the checkpoint {self._engine.checkpoint}"
                raise SkypaneError(f"the query has failed {where}: {cause(error)}") from error
            raise SkypaneError(f"the query has failed: {cause(self._turns.error)}") from self._turns.error
        if ended is not False and self.interrupted and not known:
            log.warning("interrupted: the query has stopped, and goes on from here when it is started again")
        return ended is not False

    def stop(self, *, patience: float = PATIENCE) -> None:
        """Stop the query when the batch under way is finished; no other begins.

        A batch that takes longer than `patience` seconds is given up: it leaves nothing behind, and comes again at the
        next start. Called from on_batch or a sink, which are part of a batch, it returns at once, and the query stops
        after the batch.
        """
        if self._turns.mine:
            self._stop_later(patience)
        else:
            self._stop(patience)

    def _stop(self, patience: float) -> None:
        with java_there(self._spark):
            self._turns.rest(patience)
            self.query.stop()

    def _stop_later(self, patience: float) -> None:
        def stop() -> None:
            try:
                self._stop(patience)
            except SkypaneError as error:  # Java has gone, and the query with it: who waits for it is told the same
                log.warning("cannot stop the query: %s", error)

        Thread(target=stop, name="skypane stop", daemon=True).start()

    def drain(self) -> BatchMetrics | None:
        """Stop, and answer the windows that are still open as if the stream had ended; return what this batch was like.

        A punctuation at the end of the last window with a row completes them all. A row far ahead, which is held, is
        answered if 16 rows (half of the policy's `support`; of a short stream half of all its rows) lie where it lies or
        later, or if the stream has paused at least a quarter as long before; else it is quarantined as `future`. The query
        may be started again: rows for the windows that were answered are late then. A drain that is cut
        short is finished by the next start, before any other batch. Returns None where no window was open.
        Raises SkypaneError if the query has failed; what a sink raises comes through, and leaves the drain begun.
        """
        if self._turns.mine:
            raise SkypaneError("drain() waits for the batch under way: call it outside on_batch and sinks")
        self.stop()
        self.await_termination()
        with java_there(self._spark):
            return self._engine.drain(self._spark)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C stop the query as stop() does, for as long as the context lasts.

        PySpark's own answer is to cancel all jobs, and the query fails for want of them.
        """
        if current_thread() is not main_thread():
            yield  # only the main thread may handle signals, and only it gets them
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self._stop_later(PATIENCE)
        self.interrupted = True

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing now: Spark's message, whether it runs, and what made it fail, if it has."""
        with java_there(self._spark):
            return {
                "active": self.query.isActive,
                "message": self.query.status["message"],
                "error": None if self._turns.error is None else cause(self._turns.error),
            }

    def recent_metrics(self, last: int = 10) -> list[BatchMetrics]:
        """Return the metrics of the last batches, oldest first, those of earlier starts with them."""
        return [BatchMetrics.from_json(value) for value in self._engine.ledger.history(last)]

    def front(self) -> pa.Table:
        """Return the front as it is after the last batch, whole, of a continuous skyline; safe from any thread.

        Updates before the clock are in it. Raises SkypaneError for a query that answers windows.
        """
        return self._engine.front()

    def inputs(self) -> pa.Table:
        """Return what is seen of each of many inputs, as of the last batch that is done; a row for each.

        Columns: input, reader, rate and forecast (rows per second), lag (rows), offset (in the input's units), state: read,
        silent, behind, gone. No rows before the first batch is done, and for a query without sp.inputs.
        """
        with java_there(self._spark):
            return self._told.table()

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Change the number of workers from the next batch on; there is no state to move.

        The numbers hold over a restart too, unless the job then asks for other ones than it did. With elastic= they
        hold until its next decision, which goes on from them; ConfigError if they are out of its bounds.
        """
        self._engine.scale(plq=plq, wlq=wlq)

    def explain(self) -> str:
        """Return why there are as many workers as there are: the last decision of elastic=, in one line."""
        return self._engine.explanation


@contextmanager
def java_there(spark: SparkSession) -> Iterator[None]:
    """Say in one sentence what Py4J says in many when Java has gone; other errors, a sink's say, come through."""
    try:
        yield
    except Py4JJavaError:  # Java is there, and has something to say
        raise
    except (Py4JError, ConnectionError) as error:
        if _answers(spark):
            raise
        raise SkypaneError(
            "Spark's Java process does not answer, it has ended or was killed (for want of memory, often): start the "
            "program again, the query goes on from its checkpoint"
        ) from error


def _answers(spark: SparkSession) -> bool:
    """Return whether Spark's Java process is there."""
    try:
        spark.conf.get("spark.app.name", None)  # asked each time: of its version PySpark remembers the answer
    except (Py4JError, ConnectionError):
        return False
    return True
