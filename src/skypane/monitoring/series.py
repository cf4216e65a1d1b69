"""The measures as series: values by labels, which a library of metrics keeps and exposes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from skypane.metrics import BatchMetrics
from skypane.monitoring.measures import EACH, QUERY, Measure, by_query

MOST: Final = 100
"""Values of the labels of one measure and one query; a stream may have millions of sources."""
OTHER: Final = "other"
"""The value of the labels beyond these."""


class Series(ABC):
    """A measure with its values by labels, those of the stream first; a library of metrics keeps the values."""

    def __init__(self, measure: Measure[Any]) -> None:
        self.measure = measure
        self._seen: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)

    @abstractmethod
    def put(self, labels: tuple[str, ...], value: float, times: int, *, counts: bool) -> None:
        """Add a value to a counter, or so many times to a histogram, or set a gauge; without `counts`, a counter is begun."""

    @abstractmethod
    def begin(self, labels: tuple[str, ...]) -> None:
        """Begin a counter or a histogram at 0."""

    @abstractmethod
    def remove(self, labels: tuple[str, ...]) -> None:
        """Remove the value with these labels."""

    def add(self, of: tuple[str, ...], metrics: Any, *, counts: bool = True) -> None:
        """Add the values of a batch; without `counts`, only gauges are set, and counters begin at 0."""
        times = self.measure.times(metrics)
        values = self.measure.read(metrics)
        if self.measure.whole:
            for own in self._seen[of] - values.keys():
                self._seen[of].remove(own)
                self.remove((*of, *own))
        for own, value in values.items():
            if value is not None:
                self.put((*of, *self._bounded(of, own)), value, times, counts=counts)

    def begin_stream(self, stream: str) -> None:
        """Begin a counter without further labels, so that its first batch is seen as an increase."""
        if self.measure.labels or self.measure.kind == "gauge":
            return
        self._seen[stream,].add(())
        self.begin((stream,))

    def forget(self, stream: str) -> None:
        """Remove all values of a stream."""
        for of in [of for of in self._seen if of[0] == stream]:
            for own in self._seen.pop(of):
                self.remove((*of, *own))

    def _bounded(self, of: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
        seen = self._seen[of]
        shown = (OTHER,) * len(own) if len(seen) >= MOST and own not in seen else own
        seen.add(shown)
        return shown


class StreamSeries:
    """The series of all measures of streams, and of their queries."""

    def __init__(self, series_of: Callable[[Measure[Any], tuple[str, ...]], Series]) -> None:
        """Make the series of a measure by `series_of`, which receives the labels of its values, too."""
        pairs = [(series_of(measure, (*common, *measure.labels)), common) for measure, common in EACH]
        self._of_streams = [series for series, common in pairs if QUERY not in common]
        self._of_queries = [series for series, common in pairs if QUERY in common]

    def begin(self, stream: str) -> None:
        """Begin the counters of a stream, and remove gauges of an earlier query of its name, which it may not have."""
        for series in self._of_streams:
            series.begin_stream(stream)
        for series in (*self._of_streams, *self._of_queries):
            if series.measure.kind == "gauge":
                series.forget(stream)

    def add(self, stream: str, metrics: BatchMetrics, *, counts: bool) -> None:
        """Add the metrics of a batch; without `counts`, only gauges are set, and counters begin at 0."""
        for series in self._of_streams:
            series.add((stream,), metrics, counts=counts)
        for query, one in by_query(metrics).items():
            for of_query in self._of_queries:
                of_query.add((stream, query), one, counts=counts)

    def forget(self, stream: str) -> None:
        """Remove all values of a stream."""
        for series in (*self._of_streams, *self._of_queries):
            series.forget(stream)
