"""Running queries whose batches are added up: each batch once, from the state on in which the last one has left the query."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final

from skypane.addresses import without_secrets
from skypane.metrics import BatchMetrics
from skypane.monitoring.series import StreamSeries
from skypane.runtime.background import in_background
from skypane.runtime.spark.batch_listeners import Listener
from skypane.runtime.spark.engine.ledger import KEEP
from skypane.runtime.spark.handle import StreamHandle
from skypane.types import ConfigError

log = logging.getLogger(__name__)

RECENT: Final = KEEP // 2
"""Batches that watch() reads: as many more can be committed meanwhile, before the ledger removes one of them."""


class WatchedStreams:
    """Adds the metrics of the batches of queries to series, under the names of the queries."""

    def __init__(self, series: StreamSeries, lock: Lock) -> None:
        """Hold `lock` while a batch is added: who holds it sees whole batches only."""
        self._lock = lock
        self._series = series
        self._streams: dict[str, WatchedStream] = {}
        self._began = time.time()

    @property
    def names(self) -> list[str]:
        return sorted(self._streams)

    def watch(self, handle: StreamHandle, name: str | None = None, since: float | None = None) -> WatchedStream:
        """Add the state in which the query's last batch has left it, and each batch once.

        Those batches count that began after `since`, a time of the clock, by default when this object was made, and after
        the last one of an earlier query of this name, which is replaced: counters continue, as after a restart in this
        process. Without `name`, it is that of the query in Spark, or of its checkpoint's folder. Raises ConfigError if it
        is that of a query with another checkpoint.
        """
        stream = WatchedStream(name or handle.name, handle, self._began if since is None else since)
        stream.listen(self._committed)
        try:
            known = handle.recent_metrics(RECENT)  # without the lock: its files may be far away, and others go on
            with self._lock:
                self._replace(stream, known)
        except BaseException:
            stream.forget()
            raise
        return stream

    def add(self, name: str, metrics: BatchMetrics) -> None:
        """Add a batch of the query under this name."""
        with self._lock:
            self._series.add(name, metrics, counts=True)

    def running(self, patience: float) -> dict[str, bool]:
        """Return by name whether each query runs: not if Spark does not answer within `patience` seconds, or by an error."""
        with self._lock:
            asked = {name: stream.ask() for name, stream in self._streams.items()}
        wait(asked.values(), patience)
        return {name: _runs(answer) for name, answer in asked.items()}

    def end(self, stream: WatchedStream) -> None:
        """Listen to the query no more, and forget its values; do nothing if another one has taken its place."""
        with self._lock:
            if self._streams.get(stream.name) is stream:
                stream.forget()
                self._series.forget(stream.name)
                del self._streams[stream.name]

    def close(self) -> None:
        """Listen to no query any more, and forget those that there were."""
        for stream in tuple(self._streams.values()):
            self.end(stream)

    def _replace(self, stream: WatchedStream, known: list[BatchMetrics]) -> None:
        """Let the query take the place of an earlier one of its name, from its last batches on."""
        before = self._streams.get(stream.name)
        if before is not None:
            before.check_replaceable(stream)
            stream.since = before.since
            before.forget()
        self._streams[stream.name] = stream
        self._series.begin(stream.name)
        for metrics in (*known, *stream.early):
            self._take(stream, metrics, counts=metrics.started_at > stream.since)
        stream.early.clear()

    def _committed(self, stream: WatchedStream, metrics: BatchMetrics) -> None:
        with self._lock:
            if self._streams.get(stream.name) is stream:
                self._take(stream, metrics, counts=True)
            else:  # watch() still reads what was committed before
                stream.early.append(metrics)

    def _take(self, stream: WatchedStream, metrics: BatchMetrics, *, counts: bool) -> None:
        if metrics.batch_id <= stream.through:
            return
        stream.through = metrics.batch_id
        if counts:
            stream.since = metrics.started_at
        self._series.add(stream.name, metrics, counts=counts)


@dataclass(slots=True, eq=False)
class WatchedStream:
    """A query under its name.

    since    the start of its last counted batch, at first the time from which on batches count
    through  the number of the last batch that is known
    early    batches that were committed while those before them were read
    """

    name: str
    handle: StreamHandle
    since: float
    through: int = -1
    early: list[BatchMetrics] = field(default_factory=list)
    _listener: Listener | None = None
    _asked: Future[bool] | None = None

    def listen(self, committed: Callable[[WatchedStream, BatchMetrics], None]) -> None:
        """Pass on each batch that is committed from now on."""
        self._listener = partial(committed, self)
        self.handle.add_listener(self._listener)

    def forget(self) -> None:
        """Pass on no further batch."""
        if self._listener is not None:
            self.handle.remove_listener(self._listener)
            self._listener = None

    def check_replaceable(self, other: WatchedStream) -> None:
        """Raise ConfigError unless the other one continues from the same checkpoint."""
        checkpoints = self.handle.checkpoint, other.handle.checkpoint
        if checkpoints[0] != checkpoints[1]:
            both = " and ".join(map(without_secrets, checkpoints))
            raise ConfigError(
                f"the queries of {both} are both named {self.name!r}, but metrics need a name for each: start one with name="
            )

    def ask(self) -> Future[bool]:
        """Ask Spark whether the query runs, unless an earlier call still waits for its answer."""
        if self._asked is None or self._asked.done():
            try:
                self._asked = in_background(lambda: self.handle.active)
            except RuntimeError as error:  # Python ends, and begins no thread any more
                self._asked = Future()
                self._asked.set_exception(error)
        return self._asked


def _runs(asked: Future[bool]) -> bool:
    """Return whether a query runs: not if Spark has not answered, nor if it has answered with an error."""
    if not asked.done():
        return False
    if error := asked.exception():
        log.debug("Spark does not say whether a query runs: %s", error)
        return False
    return asked.result()
