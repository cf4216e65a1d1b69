"""The measures of several streams as a registry of the Prometheus client; a scrape sees whole batches only."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric

from skypane.metrics import BatchMetrics
from skypane.prometheus.measures import OF_QUERIES, OF_STREAMS, QUERY, RUNNING, SECONDS, STREAM, Measure, by_query
from skypane.runtime.background import in_background
from skypane.runtime.spark.handle import StreamHandle

MOST: Final = 100
"""Values of the labels of one measure and one query; a stream may have millions of sources."""
OTHER: Final = "other"
"""The value of the labels beyond these."""
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
        with self._lock:
            known = self._streams.get(name)
            stream = self._streams[name] = _Stream(name, handle, self._began if known is None else known.since)
            for series in (*self._of_streams, *self._of_queries):
                series.forget_gauge(name)
            handle.add_listener(lambda metrics: self._committed(stream, metrics))  # it waits for the lock
            for metrics in handle.recent_metrics():
                self._take(stream, metrics, counts=metrics.started_at > stream.since)

    def _committed(self, stream: _Stream, metrics: BatchMetrics) -> None:
        with self._lock:
            is_watched = self._streams[stream.name] is stream  # a handle that is watched again has two listeners
            if is_watched and metrics.batch_id > stream.through:
                self._take(stream, metrics, counts=True)

    def _take(self, stream: _Stream, metrics: BatchMetrics, *, counts: bool) -> None:
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
        running = _answer(in_background(self._ask))
        with self._lock:
            for name in self._streams:
                self._running.add((name,), running.get(name, False))
            return [_without_creation(metric) for metric in self._held.collect()]

    def _ask(self) -> dict[str, bool]:
        return {stream.name: stream.handle.active for stream in tuple(self._streams.values())}


@dataclass(slots=True)
class _Stream:
    """A query under its name, the start of its last counted batch, and the number of the last one that is known."""

    name: str
    handle: StreamHandle
    since: float
    through: int = -1


def _answer(asked: Future[dict[str, bool]]) -> dict[str, bool]:
    """Return which streams run; none if Spark does not answer."""
    try:
        return asked.result(PATIENCE)
    except TimeoutError:
        return {}


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
            case Histogram() if counts:
                self._metric.labels(*labels).observe(value)

    def _bounded(self, of: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
        seen = self._seen[of]
        shown = (OTHER,) * len(own) if len(seen) >= MOST and own not in seen else own
        seen.add(shown)
        return shown

    def forget_gauge(self, stream: str) -> None:
        """Remove the values of a gauge, some of which the next query of this name may not have."""
        if isinstance(self._metric, Gauge):
            for of in [of for of in self._seen if of[0] == stream]:
                for own in self._seen.pop(of):
                    self._metric.remove(*of, *own)
