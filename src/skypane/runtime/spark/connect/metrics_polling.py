"""The listeners in the client: the engine is in the server, so the metrics are read from the ledger."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, RLock, Thread
from typing import Any, Final

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.batch_listeners import BatchListeners

log = logging.getLogger(__name__)

EVERY: Final = 1.0
"""Seconds between reads; each is a small Spark job. The ledger keeps the metrics of the last 100 batches."""


class MetricsPolling:
    """Passes the metrics of each committed batch to the listeners, in order; without any, nothing is read.

    read  returns the metrics of the batches after a number
    last  the last batch whose metrics are not passed on
    """

    def __init__(self, listeners: BatchListeners, read: Callable[[int], list[dict[str, Any]]], last: int) -> None:
        self._listeners = listeners
        self._read = read
        self._last = last
        self._one_at_a_time = RLock()
        self._passing = False
        self._again = False
        self._ended = Event()

    def start(self) -> None:
        """Read every EVERY seconds until end()."""
        Thread(target=self._poll, name="skypane metrics", daemon=True).start()

    def look(self) -> None:
        """Pass on the metrics of the batches that were committed since the last look."""
        with self._one_at_a_time:
            self._again = True
            if self._passing:  # a listener has stopped the query: the look that called it goes on
                return
            self._passing = True
            try:
                while self._again:
                    self._again = False
                    self._pass_on()
            finally:
                self._passing = False

    def _pass_on(self) -> None:
        for value in self._read(self._last) if self._listeners else ():
            metrics = BatchMetrics.from_json(value)
            self._last = metrics.batch_id
            self._listeners(metrics)

    def end(self) -> None:
        """Pass on what is left, and read no more."""
        self._ended.set()
        self.look()

    def _poll(self) -> None:
        while not self._ended.wait(EVERY):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the handle raises it where someone waits
                log.warning("the metrics cannot be read from the server: %s", error)
                return
