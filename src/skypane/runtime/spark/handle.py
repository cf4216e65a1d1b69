"""The handle of a running query: wait for it, stop it, inspect it, change its workers."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane import notebook
from skypane.addresses import without_secrets
from skypane.metrics import BatchMetrics
from skypane.naming import shortened
from skypane.runtime.background import awaited, in_background
from skypane.runtime.cell_display import show_until
from skypane.runtime.spark.batch_listeners import BatchListeners, Listener
from skypane.runtime.spark.decision_lines import explained
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.input_status import InputStatus
from skypane.runtime.spark.known_backlog import known_backlog, unended_lines
from skypane.runtime.spark.machine.answering import spark_there
from skypane.runtime.spark.query_control import BatchControl, EngineControl
from skypane.types import CheckpointError, ConfigError, SkypaneError, truth

log = logging.getLogger(__name__)

STOP_TIMEOUT = 30.0
"""Seconds that a stop waits for the running batch."""

SHOWN_BATCHES = 5
"""Batches that a notebook's cell shows."""

SAY_EVERY = 30.0
"""Seconds after which a stop that still waits says what for."""


class StreamHandle:
    """A running query: wait for it, stop it, inspect it, change its workers.

    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best")
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> handle.active
    False
    >>> [metrics.rows for metrics in handle.recent_metrics()]
    [6]
    """

    def __init__(
        self,
        query: StreamingQuery,
        engine: EngineControl,
        lifecycle: BatchControl,
        spark: SparkSession,
        inputs: InputStatus,
        listeners: BatchListeners,
        *,
        ends_by_itself: bool = False,
    ) -> None:
        self.query = query
        #: whether Ctrl-C has stopped it
        self.interrupted = False
        self._engine = engine
        self._lifecycle = lifecycle
        self._spark = spark
        self._inputs = inputs
        self._listeners = listeners
        self._ends_by_itself = ends_by_itself

    def __repr__(self) -> str:
        """Return the query in one line: its state and its last batch."""
        return f"<skypane query, {'; '.join(f'{name}: {value}' for name, value in self._summary())}>"

    def _repr_html_(self) -> str:
        return notebook.table("skypane query", self._summary(SHOWN_BATCHES))

    def display(self) -> None:
        """Show the query in a notebook's cell: its state and its last batches, updated each second until it ends.

        This returns at once; the table stays as it is at the end. On a terminal IPython prints the state once. Raises
        ConfigError without IPython.
        """
        show_until(lambda: not self.active, self._repr_html_, self.__repr__)

    def plot(self, last: int = 100) -> Any:
        """Return a matplotlib figure of the last batches: their rows, their seconds, and the share of late rows.

        Raises ConfigError before the first batch, and without matplotlib (`pip install 'skypane[cli]'`).
        """
        batches = self.recent_metrics(last)
        if not batches:
            raise ConfigError("there is no batch to plot yet")
        try:
            from skypane.runtime.batch_plot import batch_plot  # noqa: PLC0415 - of the extra `cli`
        except ModuleNotFoundError as error:
            raise ConfigError("plot() needs matplotlib: pip install 'skypane[cli]'") from error
        return batch_plot(batches)

    def _summary(self, most: int = 1) -> list[tuple[str, str]]:
        """Return names and values: the state, and up to `most` of the last batches."""
        try:
            status, last = self.status, self.recent_metrics(most)
        except SkypaneError as error:  # a notebook cell must also show a query whose Java has ended
            return [("state", str(error)), ("checkpoint", self._engine.checkpoint)]
        state = "running" if status["active"] else "stopped" if status["error"] is None else "failed"
        workers, account = self._engine.workers, last[-1].account if last else {}
        summary = [
            ("state", state),
            # If the query has failed, a trace follows the first line of Spark's message.
            ("doing" if status["active"] else "last status", shortened(status["message"].partition("\n")[0])),
            ("last batch", str(last[-1]) if last else "none yet"),
            *((f"batch {metrics.batch_id}", str(metrics)) for metrics in reversed(last[:-1])),
            *((f"rows of {name}" if name else "rows", text) for name, text in account.items() if text),
            *(("cause", cause.line) for cause in (last[-1].causes if last else ())),
            ("workers", f"{workers.plq} for panes, {workers.wlq} for windows"),
            ("checkpoint", self._engine.checkpoint),
        ]
        return summary if status["error"] is None else [*summary, ("error", status["error"])]

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, or for `timeout` seconds; return whether it has ended.

        Ctrl-C stops the query as stop() does, which ends the wait; a second Ctrl-C does not wait for the running batch.
        Raises SkypaneError, with the cause in one line, if the query failed; its __cause__ has the whole trace.
        """
        interrupted_before = self.interrupted
        try:
            with self.interruptible(), spark_there(self._spark):
                # Spark accepts fractions of a second, despite its annotation, but not zero.
                limit = None if timeout is None else max(timeout, 0.001)
                ended = awaited(in_background(lambda: self.query.awaitTermination(limit)))  # type: ignore[arg-type]
        except StreamingQueryException as error:
            self._settle(failed=True)
            if self._lifecycle.error is None:
                where = f"in Spark's part, with the checkpoint {self._engine.checkpoint}"
                raise SkypaneError(f"the query has failed {where}: {cause(error)}") from error
            raise SkypaneError(f"the query has failed: {cause(self._lifecycle.error)}") from self._lifecycle.error
        if ended is not False:
            self._settle()
        if ended is not False and self.interrupted and not interrupted_before:
            log.warning("interrupted: the query has stopped; the next start resumes it from here")
        return ended is not False

    def stop(self, *, timeout: float = STOP_TIMEOUT) -> None:
        """Stop the query after the running batch; no further batch begins.

        A batch that takes longer than `timeout` seconds is abandoned: it leaves nothing behind, and the next start
        repeats it. When called from on_batch or a sink, which are part of a batch, this returns at once, and the query
        stops after that batch. Spark can interrupt its own jobs, and not Python: a sink that waits in Python is waited
        for, and a warning every 30 s names the line in which it is.
        """
        if self._lifecycle.mine:
            self._stop_later(timeout)
        else:
            self._stop(timeout)

    def _stop(self, timeout: float) -> None:
        with spark_there(self._spark):
            try:
                self._lifecycle.rest(timeout)
            finally:  # a batch that was refused waits for the stop, so an interrupt of rest() must not leave it out
                self._end()

    def _end(self) -> None:
        """Have Spark stop the query, and say every SAY_EVERY seconds what it waits for."""
        stopped = in_background(self.query.stop)
        while not wait([stopped], SAY_EVERY).done:
            log.warning("the query does not stop yet: %s", self._lifecycle.doing)
        stopped.result()
        self._settle()

    def _settle(self, *, failed: bool = False) -> None:
        """Have sinks and listeners receive what is left for them, once the query has ended.

        If it has failed, its own error is the one to raise; if another driver has taken over, that one delivers the rows.
        """
        try:
            self._engine.publish(self._spark)
        except Exception as error:
            if not (failed or isinstance(error, CheckpointError)):
                raise
            place = without_secrets(self._engine.checkpoint)
            log.warning("committed rows wait in %s for their file: %s", place, without_secrets(str(error)))
        self._lifecycle.settle()

    def _stop_later(self, timeout: float) -> None:
        def stop() -> None:
            try:
                self._stop(timeout)
            except Exception as error:  # noqa: BLE001 - Java has ended, or a sink fails: await_termination() raises it, too
                log.warning("the stop of the query has failed: %s", error)

        Thread(target=stop, name="skypane stop", daemon=True).start()

    def drain(self, *, now: bool = False) -> BatchMetrics | None:
        """Stop, answer the open windows as if the stream had ended, and return the metrics of this last batch.

        Raises SkypaneError if the sources know of rows that are not read yet, as these would be late afterwards; the query
        has stopped then, and the next start reads them. With `now` it is drained all the same.

        A query with the trigger "available now" is not stopped: it first processes the rows that are there, as a
        DataFrame's action would. Ctrl-C while it does stops it as stop() does, and raises KeyboardInterrupt.

        A punctuation at the end of the last window with a row completes them all. A held row, which is far ahead of the
        rest, is answered if 16 rows (half of the policy's `support`; in a short stream half of all its rows) lie where
        it lies or later, or if the stream has paused at least a quarter as long before; otherwise it is quarantined as
        `future`. The query can be started again; rows for the answered windows are then late. The next start finishes
        an interrupted drain before any other batch. Returns None if no window was open. Raises SkypaneError if the
        query has failed; an error of a sink propagates, and leaves the drain unfinished.
        """
        if self._lifecycle.mine:
            raise SkypaneError("drain() waits for the running batch: call it outside on_batch and sinks")
        ahead = truth(now, "now")
        self._await_last_batch()
        with spark_there(self._spark):
            if not ahead:
                self._check_complete()
            if lines := unended_lines(self.query):
                log.warning("the last line or compressed member has not ended, and is in no answer: %s; end it", lines)
            metrics = self._engine.drain(self._spark)
            self._lifecycle.settle()  # the listeners get this batch, too
        return metrics

    def _check_complete(self) -> None:
        """Raise SkypaneError if the sources know of rows that no committed batch has; the query has stopped."""
        rows = known_backlog(self.query) or ("the rows of a batch that has begun" if self._engine.has_begun else "")
        if rows:
            raise SkypaneError(
                f"the stream is not complete: {rows} wait to be read, and would be late after a drain. Start the query "
                f"again until it has read them, as trigger='available now' does, and drain it then; drain(now=True), or "
                f"`skypane run JOB --drain --now`, answers the open windows without them"
            )

    def readmit(self, reason: str, repair: Callable[[DataFrame], DataFrame] | None = None) -> BatchMetrics | None:
        """Stop, process the rows that were rejected for `reason` once more, and return the metrics of this batch.

        A query with the trigger "available now" first processes the rows that are there, as for drain().

        reason   a value of the column `reason` in the folder of late rows, such as "null price" or "future"
        repair   returns the rows repaired, with the same columns; a row that it leaves out stays rejected for good

        Repaired rows enter their windows as rows of a batch: windows that have been answered are amended if the job has
        late=Amend(...), which names the folder; without it their rows are late again. The punctuation does not move,
        and the progress policy does not see the rows a second time. A row comes back once: another call takes the rows
        that were rejected since, in this batch too. The next start finishes an interrupted readmission first.

        Raises ConfigError if there are no such rows, or if late rows are not written to a folder of parquet.
        """
        if self._lifecycle.mine:
            raise SkypaneError("readmit() waits for the running batch: call it outside on_batch and sinks")
        self._await_last_batch()
        with spark_there(self._spark):
            metrics = self._engine.readmit(self._spark, reason, repair)
            self._lifecycle.settle()
        return metrics

    def _await_last_batch(self) -> None:
        """Stop the query, and wait until it has ended; one that ends by itself is waited for and not stopped.

        Raises KeyboardInterrupt if Ctrl-C has stopped it meanwhile.
        """
        interrupted_before = self.interrupted
        if not self._ends_by_itself:
            self.stop()
        self.await_termination()
        if self.interrupted and not interrupted_before:
            raise KeyboardInterrupt

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C stop the query as stop() does while the context is open.

        PySpark's own handler cancels all jobs, so the query would fail.
        """
        if current_thread() is not main_thread():
            yield  # only the main thread may handle signals, and only it receives them
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self._stop_later(STOP_TIMEOUT)
        self.interrupted = True

    @property
    def checkpoint(self) -> str:
        """Location of the checkpoint."""
        return self._engine.checkpoint

    @property
    def name(self) -> str:
        """The name of the query in Spark; without one, that of the checkpoint's folder."""
        with spark_there(self._spark):
            return self.query.name or without_secrets(self.checkpoint).rstrip("/").rpartition("/")[2]

    @property
    def active(self) -> bool:
        """Whether the query runs; False if it has ended, and if Spark's process has."""
        try:
            with spark_there(self._spark):
                return self.query.isActive
        except SkypaneError:
            return False

    def add_listener(self, on_batch: Listener) -> None:
        """Call `on_batch` with the metrics of every batch that is committed from now on, as on_batch of start().

        Over Spark Connect, the first listener also gets the batches since the start.
        """
        self._listeners.add(on_batch)

    def remove_listener(self, on_batch: Listener) -> None:
        """Call `on_batch`, which add_listener() has added, no more."""
        self._listeners.remove(on_batch)

    @property
    def status(self) -> dict[str, Any]:
        """Status of the query: "active", Spark's "message", and "error", the cause of a failure or None."""
        with spark_there(self._spark):
            return {
                "active": self.query.isActive,
                "message": self.query.status["message"],
                "error": None if self._lifecycle.error is None else cause(self._lifecycle.error),
            }

    def recent_metrics(self, last: int = 10) -> list[BatchMetrics]:
        """Return the metrics of the last batches, oldest first, including those of earlier driver starts.

        The last 100 batches are kept; those that later batches replace while they are read are left out.
        """
        return [BatchMetrics.from_json(value) for value in self._engine.history(last)]

    def front(self) -> pa.Table:
        """Return the whole front of a continuous skyline after the last batch; safe from any thread.

        It includes all updates before the clock. Raises SkypaneError for a query that answers windows.
        """
        return self._engine.front()

    def inputs(self) -> pa.Table:
        """Return the status of each of many inputs after the last finished batch, one row per input.

        Columns: input, reader, rate and forecast (rows per second), lag (rows), offset (in the input's units), state
        (read, silent, behind, gone), waiting (seconds of event time that the lag spans, if known). Empty before the
        first batch is finished, and for a query without sp.inputs.
        """
        with spark_there(self._spark):
            return self._inputs.table()

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Change the number of workers from the next batch on; no state has to move.

        The numbers survive a restart, unless the job then requests different ones than before. With elastic= they hold
        until its next decision, which starts from them; raises ConfigError if they are out of its bounds.
        """
        self._engine.scale(plq=plq, wlq=wlq)

    def explain(self) -> str:
        """Return every policy's decision for the last batch with its reason, one line each, the numbers of workers first.

        Several queries over one stream have lines of their own: "progress of best: ...".
        """
        try:
            with spark_there(self._spark):
                sources = self._inputs.now().decisions
        except SkypaneError:  # Java has ended, and the decisions are in the checkpoint
            sources = ()
        return explained(self._engine.explanation, self.recent_metrics(1), sources)
