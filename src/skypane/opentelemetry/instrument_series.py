"""The series of a measure as an instrument of OpenTelemetry."""

from __future__ import annotations

import math
from collections.abc import Iterable
from threading import Lock
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from skypane.monitoring.measures import SECONDS, Measure
from skypane.monitoring.series import Series
from skypane.opentelemetry.names import described


class ObservedSeries(Series):
    """A counter or a gauge: its values are kept here, and read when a reader collects them.

    A counter that is removed and begun again continues: for OpenTelemetry it is one series, which never decreases, and an
    exporter of differences would export a negative one.
    """

    def __init__(self, measure: Measure[Any], labels: tuple[str, ...], meter: Meter, lock: Lock) -> None:
        """Create the instrument; `lock` is held while a batch is added."""
        super().__init__(measure)
        self._labels = labels
        self._lock = lock
        self._values: dict[tuple[str, ...], float] = {}
        #: counters that were removed
        self._removed: dict[tuple[str, ...], float] = {}
        create = meter.create_observable_counter if measure.kind == "counter" else meter.create_observable_gauge
        name, unit = described(measure)
        create(name, [self._observed], unit, measure.meaning)

    def put(self, labels: tuple[str, ...], value: float, times: int, *, counts: bool) -> None:  # noqa: ARG002
        if self.measure.kind == "gauge":
            self._values[labels] = value
        else:
            self.begin(labels)
            self._values[labels] += value if counts else 0

    def begin(self, labels: tuple[str, ...]) -> None:
        if labels not in self._values:
            self._values[labels] = self._removed.pop(labels, 0)

    def remove(self, labels: tuple[str, ...]) -> None:
        value = self._values.pop(labels)
        if self.measure.kind == "counter":
            self._removed[labels] = value

    def _observed(self, _: CallbackOptions) -> Iterable[Observation]:
        """Return all values; one that is not known is left out, because OpenTelemetry has no number for that."""
        with self._lock:
            values = list(self._values.items())
        return [
            Observation(value, dict(zip(self._labels, labels, strict=True)))
            for labels, value in values
            if math.isfinite(value)
        ]


class RecordedSeries(Series):
    """A histogram: OpenTelemetry has none that a reader collects, so each batch is recorded when it is committed."""

    def __init__(self, measure: Measure[Any], labels: tuple[str, ...], meter: Meter) -> None:
        super().__init__(measure)
        self._labels = labels
        name, unit = described(measure)
        self._histogram = meter.create_histogram(
            name, unit, measure.meaning, explicit_bucket_boundaries_advisory=SECONDS
        )

    def put(self, labels: tuple[str, ...], value: float, times: int, *, counts: bool) -> None:
        for _ in range(times if counts else 0):
            self._histogram.record(value, dict(zip(self._labels, labels, strict=True)))

    def begin(self, labels: tuple[str, ...]) -> None:
        """Do nothing: a histogram begins with its first value."""

    def remove(self, labels: tuple[str, ...]) -> None:
        """Do nothing: what was recorded is kept by the provider."""
