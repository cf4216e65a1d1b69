"""The measures of several streams as a registry of the Prometheus client; a scrape sees whole batches only."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from threading import Lock
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric

from skypane.monitoring.measures import RUNNING, SECONDS, STREAM, Measure
from skypane.monitoring.series import Series, StreamSeries
from skypane.monitoring.watched_streams import WatchedStreams

PATIENCE: Final = 5.0
"""Seconds for which a scrape waits for Spark to say whether the queries run; Prometheus itself waits for 10 by default."""


class Exporter:
    """Adds up the metrics of batches, and gives them to each scrape."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = CollectorRegistry()
        self._running = PrometheusSeries(RUNNING, (STREAM,), self._held)
        #: the queries whose metrics are exposed
        self.streams = WatchedStreams(StreamSeries(partial(PrometheusSeries, registry=self._held)), self._lock)
        #: what the endpoint serves
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return all metrics; the Prometheus client calls this for each scrape."""
        running = self.streams.running(PATIENCE)
        with self._lock:
            for name, runs in running.items():
                self._running.add((name,), runs)
            return [_without_creation(metric) for metric in self._held.collect()]


def _without_creation(metric: Metric) -> Metric:
    """Leave out the times at which counters began, which would double their number."""
    metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    return metric


class PrometheusSeries(Series):
    """A measure with its values in a registry of the Prometheus client."""

    def __init__(self, measure: Measure[Any], labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        super().__init__(measure)
        self._metric: Counter | Gauge | Histogram
        match measure.kind:
            case "counter":
                self._metric = Counter(measure.name, measure.meaning, labels, registry=registry)
            case "gauge":
                self._metric = Gauge(measure.name, measure.meaning, labels, registry=registry)
            case "histogram":
                self._metric = Histogram(measure.name, measure.meaning, labels, registry=registry, buckets=SECONDS)

    def put(self, labels: tuple[str, ...], value: float, times: int, *, counts: bool) -> None:
        match self._metric:
            case Gauge():
                self._metric.labels(*labels).set(value)
            case Counter():
                self._metric.labels(*labels).inc(value if counts else 0)
            case Histogram():
                of_labels = self._metric.labels(*labels)
                for _ in range(times if counts else 0):
                    of_labels.observe(value)

    def begin(self, labels: tuple[str, ...]) -> None:
        self._metric.labels(*labels)

    def remove(self, labels: tuple[str, ...]) -> None:
        self._metric.remove(*labels)
