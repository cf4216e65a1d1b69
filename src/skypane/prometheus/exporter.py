"""The measures of several streams as a registry of the Prometheus client; a scrape sees whole batches only."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric

from skypane.metrics import BatchMetrics
from skypane.prometheus.measures import OF_QUERIES, OF_STREAMS, QUERY, RUNNING, SECONDS, STREAM, Measure, by_query
from skypane.runtime.background import in_background
from skypane.runtime.spark.batch_listeners import Listener
from skypane.runtime.spark.engine.ledger import KEEP
from skypane.runtime.spark.handle import StreamHandle

log = logging.getLogger(__name__)

MOST: Final = 100
"""Values of the labels of one measure and one query; a stream may have millions of sources."""
OTHER: Final = "other"
"""The value of the labels beyond these."""
RECENT: Final = KEEP // 2
"""Batches that watch() reads: as many more can be committed meanwhile, before the ledger removes one of them."""
PATIENCE: Final = 5.0
"""Seconds for which a scrape waits for Spark to say whether the queries run; Prometheus itself waits for 10 by default."""


class Exporter:
    """Adds up the metrics of batches, and gives them to each scrape."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = CollectorRegistry()
        self._running = _Series(RUNNING, (STREAM,), self._held)
        self._of_streams = [_Series(measure, (STREAM,), self._held) for measure in OF_STREAMS]
        self._of_queries = [_Series(measure, (STREAM, QUERY), self._held) for measure in OF_QUERIES]
        self._streams: dict[str, _Stream] = {}
        self._began = time.time()
        #: what the endpoint serves
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def watch(self, name: str, handle: StreamHandle) -> None:
        """Expose the query under this name: the state in which its last batch has left it, and each batch once.

        Those batches count that began after this exporter, and after the last one of an earlier query of this name, which
        is replaced: counters continue, as after a restart in this process.
        """
        stream = _Stream(name, handle)
        stream.listen(self._committed)
        try:
            known = handle.recent_metrics(RECENT)  # without the lock: its files may be far away, and scrapes go on
        except BaseException:
            stream.forget()
            raise
        with self._lock:
            self._replace(stream, known)

    def _replace(self, stream: _Stream, known: list[BatchMetrics]) -> None:
        """Let the query take the place of an earlier one of its name, from its last batches on."""
        before = self._streams.get(stream.name)
        stream.since = self._began
        if before is not None:
            stream.since = before.since
            before.forget()
        self._streams[stream.name] = stream
        for series in self._of_streams:
            series.begin(stream.name)
        for of_any in (*self._of_streams, *self._of_queries):
            of_any.forget_gauge(stream.name)
        for metrics in (*known, *stream.early):
            self._take(stream, metrics, counts=metrics.started_at > stream.since)
        stream.early.clear()

    def _committed(self, stream: _Stream, metrics: BatchMetrics) -> None:
        with self._lock:
            if self._streams.get(stream.name) is stream:
                self._take(stream, metrics, counts=True)
            else:  # watch() still reads what was committed before
                stream.early.append(metrics)

    def _take(self, stream: _Stream, metrics: BatchMetrics, *, counts: bool) -> None:
        if metrics.batch_id <= stream.through:
            return
        stream.through = metrics.batch_id
        if counts:
            stream.since = metrics.started_at
        self._add(stream.name, metrics, counts=counts)

    def add(self, name: str, metrics: BatchMetrics) -> None:
        """Add a batch of the query under this name."""
        with self._lock:
            self._add(name, metrics, counts=True)

    def _add(self, stream: str, metrics: BatchMetrics, *, counts: bool) -> None:
        """Add the metrics of a batch; without `counts`, only gauges are set, and counters begin at 0."""
        for series in self._of_streams:
            series.add((stream,), metrics, counts=counts)
        for query, one in by_query(metrics).items():
            for of_query in self._of_queries:
                of_query.add((stream, query), one, counts=counts)

    def collect(self) -> Iterable[Metric]:
        """Return all metrics; the Prometheus client calls this for each scrape."""
        with self._lock:
            asked = {name: stream.ask() for name, stream in self._streams.items()}
        wait(asked.values(), PATIENCE)
        with self._lock:
            for name, answer in asked.items():
                self._running.add((name,), _runs(answer))
            return [_without_creation(metric) for metric in self._held.collect()]

    def close(self) -> None:
        """Listen to no query any more."""
        with self._lock:
            for stream in self._streams.values():
                stream.forget()


@dataclass(slots=True, eq=False)
class _Stream:
    """A query under its name.

    since    the start of its last counted batch
    through  the number of the last batch that is known
    early    batches that were committed while those before them were read
    """

    name: str
    handle: StreamHandle
    since: float = 0.0
    through: int = -1
    early: list[BatchMetrics] = field(default_factory=list)
    _listener: Listener | None = None
    _asked: Future[bool] | None = None

    def listen(self, committed: Callable[[_Stream, BatchMetrics], None]) -> None:
        """Pass on each batch that is committed from now on."""
        self._listener = partial(committed, self)
        self.handle.add_listener(self._listener)

    def forget(self) -> None:
        """Pass on no further batch."""
        if self._listener is not None:
            self.handle.remove_listener(self._listener)
            self._listener = None

    def ask(self) -> Future[bool]:
        """Ask Spark whether the query runs, unless an earlier scrape still waits for its answer."""
        if self._asked is None or self._asked.done():
            self._asked = in_background(lambda: self.handle.active)
        return self._asked


def _runs(asked: Future[bool]) -> bool:
    """Return whether a query runs: not if Spark has not answered, nor if it has answered with an error."""
    if not asked.done():
        return False
    if error := asked.exception():
        log.debug("Spark does not say whether a query runs: %s", error)
        return False
    return asked.result()


def _without_creation(metric: Metric) -> Metric:
    """Leave out the times at which counters began, which would double their number."""
    metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    return metric


class _Series:
    """A measure with its values by labels."""

    def __init__(self, measure: Measure[Any], common: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._measure = measure
        self._seen: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        labels = (*common, *measure.labels)
        self._metric: Counter | Gauge | Histogram
        match measure.kind:
            case "counter":
                self._metric = Counter(measure.name, measure.meaning, labels, registry=registry)
            case "gauge":
                self._metric = Gauge(measure.name, measure.meaning, labels, registry=registry)
            case "histogram":
                self._metric = Histogram(measure.name, measure.meaning, labels, registry=registry, buckets=SECONDS)

    def add(self, of: tuple[str, ...], metrics: Any, *, counts: bool = True) -> None:
        """Add the values of a batch; without `counts`, only gauges are set, and counters begin at 0."""
        for own, value in self._measure.read(metrics).items():
            if value is not None:
                self._put((*of, *self._bounded(of, own)), value, counts=counts)

    def _put(self, labels: tuple[str, ...], value: float, *, counts: bool) -> None:
        match self._metric:
            case Gauge():
                self._metric.labels(*labels).set(value)
            case Counter():
                self._metric.labels(*labels).inc(value if counts else 0)
            case Histogram():
                of_labels = self._metric.labels(*labels)
                if counts:
                    of_labels.observe(value)

    def _bounded(self, of: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
        seen = self._seen[of]
        shown = (OTHER,) * len(own) if len(seen) >= MOST and own not in seen else own
        seen.add(shown)
        return shown

    def begin(self, stream: str) -> None:
        """Begin a counter without labels of its own at 0, so that Prometheus sees the first batch as an increase."""
        if not self._measure.labels and not isinstance(self._metric, Gauge):
            self._metric.labels(stream)

    def forget_gauge(self, stream: str) -> None:
        """Remove the values of a gauge, some of which the next query of this name may not have."""
        if isinstance(self._metric, Gauge):
            for of in [of for of in self._seen if of[0] == stream]:
                for own in self._seen.pop(of):
                    self._metric.remove(*of, *own)
