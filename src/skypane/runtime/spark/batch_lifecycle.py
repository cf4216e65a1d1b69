"""Serialised batches: one at a time, and none after a stop was requested.

Spark stops a query by interrupting the thread that runs its batch, at any point. A stop therefore first waits until no
batch is running. A batch that Spark begins after that is abandoned before it does anything, and the next start repeats
it. A batch that is interrupted nevertheless fails in the middle of its work, which is not a failure of the query: it
ends as an interrupted batch of Spark's own does, with an error in whose text Spark finds its interrupt.

Py4J answers Java only if a callback returns or raises an Exception. SystemExit, KeyboardInterrupt, asyncio.CancelledError
and others that are not an Exception would end the thread of the callback, and Java would wait for its answer forever.
They therefore fail the batch as other errors do.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from threading import Event, Lock, get_ident
from traceback import walk_stack

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from skypane.naming import shortened
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.machine.java_errors import Py4JError
from skypane.runtime.spark.patient_start import INITIALIZING

log = logging.getLogger(__name__)

INTERRUPT = "py4j.protocol.Py4JJavaError: An error occurred while calling foreachBatch: java.lang.InterruptedException"
"""Text in an error from Python by which Spark distinguishes a query that was stopped from one that failed."""

FAILED = "skypane: batch {} failed: "
"""How the text of a failed batch's error begins; the cause follows."""

POLL = 0.01
"""Seconds between checks of a query that is about to end; inside foreachBatch Python receives no notification."""
LOOKS = 5
"""Checks without a running batch before the query counts as waiting for its trigger; most batches begin at once."""
LOOK = 0.2
"""Seconds between checks, in a pause, whether Spark has stopped the query; stop() of the handle ends a pause at once."""
CALLS = 4
"""Calls of a running batch that a message shows: a sink's own, and the library's in which it waits."""


class BatchLifecycle:
    """The function that foreachBatch calls; it passes each batch to `process`, and pauses after it."""

    def __init__(self, process: Callable[[DataFrame, int], None], pause: Callable[[], float] = lambda: 0.0) -> None:
        """Pause after each batch while `pause` returns seconds that are left."""
        self._process = process
        self._pause = pause
        self._running = Lock()
        self._thread: int | None = None
        self._stopping = Event()
        #: set when Spark has begun a batch that will be abandoned
        self._refused = Event()
        #: the query that runs these batches, once it is known
        self.query: StreamingQuery | None = None
        #: the error that made the query fail, with its trace
        self.error: BaseException | None = None
        self._batch_id = -1

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        with self._running:
            begins = not self._stopping.is_set()
            if begins:
                self._run(rows, batch_id)
        if not begins:
            self._refused.set()
            # Spark would take an error that comes before it has registered the stop for a failure.
            while self.active():
                time.sleep(POLL)
            raise abandoned(batch_id)

    @property
    def mine(self) -> bool:
        """Whether the caller, such as a listener or a sink, runs inside the current batch."""
        return self._thread == get_ident()

    @property
    def doing(self) -> str:
        """Where the running batch is now: its last calls in Python, outermost first."""
        frame = sys._current_frames().get(self._thread or 0)  # noqa: SLF001 - public, despite its name
        if frame is None:
            return "Spark is ending the query, and no batch is in Python"
        calls = list(walk_stack(frame))[CALLS - 1 :: -1]
        places = (f"{call.f_code.co_qualname} ({call.f_code.co_filename}:{line})" for call, line in calls)
        return f"batch {self._batch_id} is in {', '.join(places)}"

    def rest(self, timeout: float) -> None:
        """Let no further batch begin, and wait for the running one, at most `timeout` seconds.

        Also waits while Spark commits the batch: an interrupt of the commit makes Spark print ninety lines.
        """
        self._stopping.set()
        until = time.monotonic() + timeout
        if self._running.acquire(timeout=max(timeout, 0.0)):
            self._running.release()
        while time.monotonic() < until and not self._refused.is_set() and not self._idle():
            self._refused.wait(POLL)

    def settle(self) -> None:
        """Return at once: the listener is called in the batches, before the query ends."""

    def _idle(self) -> bool:
        return self.query is None or is_idle(self.query, self._refused.wait)

    def _run(self, rows: DataFrame, batch_id: int) -> None:
        self._thread, self._batch_id = get_ident(), batch_id
        try:
            self._process(rows, batch_id)
            self._rest_of_pause()
        except BaseException as error:  # not only Exception: see above
            if self._stopped():
                log.info("batch %d was stopped by %r", batch_id, error)
                raise abandoned(batch_id) from None
            # Spark 4.3 searches for its interrupt with a regular expression that overflows the stack on a long message.
            log.error("batch %d failed: %s", batch_id, cause(error))  # noqa: TRY400  # the trace has pages
            log.debug("trace of the failure of batch %d", batch_id, exc_info=error)
            self.error = error
            raise failure(batch_id, error) from None
        finally:
            self._thread = None

    def _rest_of_pause(self) -> None:
        """Wait until the pause after a batch is over, or until the query is to stop, by stop() or by Spark's own."""
        while (left := self._pause()) > 0 and self.active():
            if self._stopping.wait(min(left, LOOK)):
                break

    def _stopped(self) -> bool:
        """Return whether Spark has stopped the query; False if it has not, or if Java has ended."""
        try:
            return self.query is not None and not self.query.isActive
        except (Py4JError, ConnectionError):  # Java has ended
            return False

    def active(self) -> bool:
        """Return whether Spark may still stop the query; False if it has, or if Java has ended."""
        try:
            return self.query is None or self.query.isActive
        except (Py4JError, ConnectionError):  # Java has ended
            return False


def is_idle(query: StreamingQuery, pause: Callable[[float], object]) -> bool:
    """Return whether the query has ended, waits for data, or has run no batch during LOOKS checks, POLL seconds apart."""
    for _ in range(LOOKS):
        if not query.isActive:
            return True
        status = query.status
        if status["isTriggerActive"] or status["message"].startswith(INITIALIZING):
            return False
        if not status["isDataAvailable"]:
            return True
        pause(POLL)
    return True


def failure(batch_id: int, error: BaseException) -> RuntimeError:
    """Return the error with which a batch fails in Spark; Spark shows its text among pages of others."""
    return RuntimeError(f"{FAILED.format(batch_id)}{shortened(cause(error), 500)}")


def abandoned(batch_id: int) -> InterruptedError:
    """Return the error with which a batch ends that a stop has ended."""
    return InterruptedError(f"batch {batch_id} is abandoned; the next start repeats it: {INTERRUPT}")
