"""Batches one at a time, and none after a stop is wanted.

Spark stops a query by interrupting the thread that runs its batch, wherever that is. So a stop first waits until no
batch is under way; a batch that Spark begins after that is given up before it has done anything, and comes again at
the next start. A batch that is interrupted all the same fails with whatever it was doing, which is no failure of the
query: it ends as Spark's own would, by an error in whose text Spark finds its interrupt.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock, get_ident

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from skypane.naming import shortened
from skypane.runtime.spark.causes import cause

log = logging.getLogger(__name__)

INTERRUPT = "py4j.protocol.Py4JJavaError: An error occurred while calling foreachBatch: java.lang.InterruptedException"
"""What Spark looks for in an error out of Python, to tell a query that was stopped from one that failed."""

POLL = 0.01
"""Seconds between looks at a query that is about to end; nothing tells Python of it inside foreachBatch."""
LOOKS = 5
"""How often a query is looked at between two batches before it is taken to wait for its trigger: most begin at once."""


class Turns:
    """The function that foreachBatch calls; `process` gets each batch."""

    def __init__(self, process: Callable[[DataFrame, int], None]) -> None:
        self._process = process
        self._turn = Lock()
        self._thread: int | None = None
        self._stopping = Event()
        #: set when a batch has begun that will not be taken
        self._held = Event()
        #: the query whose batches these are, once it is known
        self.query: StreamingQuery | None = None
        #: what made the query fail, in full
        self.error: Exception | None = None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        with self._turn:
            begins = not self._stopping.is_set()
            if begins:
                self._take(rows, batch_id)
        if not begins:
            self._held.set()
            # An error that comes before Spark has noted the stop would be taken for a failure.
            while not self._stopped():
                time.sleep(POLL)
            raise _given_up(batch_id)

    @property
    def mine(self) -> bool:
        """Whether the caller is in the batch that is under way: a listener, or a sink."""
        return self._thread == get_ident()

    def rest(self, patience: float) -> None:
        """Let no other batch begin; wait for the one under way, at most `patience` seconds.

        Then Spark notes that it is done. It is waited for too, as an interrupt of that makes it print ninety lines.
        """
        self._stopping.set()
        until = time.monotonic() + patience
        if self._turn.acquire(timeout=max(patience, 0.0)):
            self._turn.release()
        while time.monotonic() < until and not self._held.is_set() and not self._rests():
            self._held.wait(POLL)

    def _rests(self) -> bool:
        """Whether the query has ended, waits for data, or has had no batch for LOOKS looks: the next may begin at once."""
        for _ in range(LOOKS):
            if self.query is None or not self.query.isActive:
                return True
            status = self.query.status
            if status["isTriggerActive"]:
                return False
            if not status["isDataAvailable"]:
                return True
            self._held.wait(POLL)
        return True

    def _take(self, rows: DataFrame, batch_id: int) -> None:
        self._thread = get_ident()
        try:
            self._process(rows, batch_id)
        except Exception as error:
            if self._stopped():
                log.info("batch %d was stopped by %r", batch_id, error)
                raise _given_up(batch_id) from None
            # Spark 4.3 looks for its interrupt with a regular expression that overflows the stack on a long message.
            log.error("batch %d failed: %s", batch_id, cause(error))  # noqa: TRY400  # the trace has pages
            log.debug("batch %d failed here", batch_id, exc_info=error)
            self.error = error
            raise RuntimeError(f"skypane: batch {batch_id} failed: {shortened(cause(error), 500)}") from None
        finally:
            self._thread = None

    def _stopped(self) -> bool:
        try:
            return self.query is not None and not self.query.isActive
        except (Py4JError, ConnectionError):  # Java has ended
            return False


def _given_up(batch_id: int) -> InterruptedError:
    return InterruptedError(f"batch {batch_id} is given up, it comes again at the next start: {INTERRUPT}")
