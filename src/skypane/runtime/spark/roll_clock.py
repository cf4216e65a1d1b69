"""The clock of rolling sinks: it has rows delivered that wait for their file while no batch comes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Protocol

from pyspark.sql import SparkSession

from skypane.types import CheckpointError

log = logging.getLogger(__name__)

EVERY: Final = 1.0
"""Seconds between looks."""


class Publisher(Protocol):
    """The part of an engine that delivers rows which wait for their file."""

    def publish(self, spark: SparkSession) -> None: ...
    def publish_due(self, spark: SparkSession) -> None: ...


class RollClock:
    """Looks every `every` seconds until the query has ended, when it has all delivered that still waits."""

    def __init__(
        self, engine: Publisher, spark: SparkSession, is_active: Callable[[], bool], every: float = EVERY
    ) -> None:
        self._engine, self._spark, self._is_active, self._every = engine, spark, is_active, every
        self._looking = Event()
        #: the kind of error with which the last look has failed
        self._failed: type[Exception] | None = None

    def start(self) -> None:
        """Look in a thread that ends with the query."""
        Thread(target=self.run, name="skypane roll", daemon=True).start()

    def run(self) -> None:
        """Look until the query has ended."""
        while self._is_active():
            self._try(self._engine.publish_due)
            self._looking.wait(self._every)
        self._try(self._engine.publish)

    def _try(self, publish: Callable[[SparkSession], None]) -> None:
        failed: type[Exception] | None = None
        try:
            publish(self._spark)
        except Exception as error:  # noqa: BLE001 - the next batch, stop() or start meets it, too, and raises it
            failed = type(error)
            if failed is not self._failed:  # a disk may be full for hours
                # A driver that was fenced leaves the rows to the one that has taken over.
                level = logging.INFO if isinstance(error, CheckpointError) else logging.WARNING
                log.log(level, "rows wait in the checkpoint, as their file cannot be written yet: %s", error)
        self._failed = failed
