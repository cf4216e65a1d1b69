"""What an exporter of OpenTelemetry would send: the values that a reader of the real SDK collects."""

from __future__ import annotations

from typing import TypeAlias

from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, Metric, NumberDataPoint

Labels: TypeAlias = tuple[tuple[str, object], ...]


def provider_and_reader(*, differences: bool = False) -> tuple[MeterProvider, InMemoryMetricReader]:
    """Return a provider and its reader, to which counters are sums since the beginning, or `differences` since it last read."""
    temporality: dict[type, AggregationTemporality] = {ObservableCounter: AggregationTemporality.DELTA}
    reader = InMemoryMetricReader(temporality if differences else None)
    return MeterProvider([reader], shutdown_on_exit=False), reader


def metrics(reader: InMemoryMetricReader) -> dict[str, Metric]:
    found = reader.get_metrics_data()
    resources = [] if found is None else found.resource_metrics
    return {one.name: one for each in resources for scope in each.scope_metrics for one in scope.metrics}


def values(reader: InMemoryMetricReader) -> dict[tuple[str, Labels], float]:
    """Return all values by name and attributes; those of a histogram are its counts."""
    return {
        (name, tuple(sorted((point.attributes or {}).items()))): point.value
        if isinstance(point, NumberDataPoint)
        else point.count
        for name, metric in metrics(reader).items()
        for point in metric.data.data_points
    }


def value(reader: InMemoryMetricReader, name: str, **labels: str) -> float:
    return values(reader)[name, tuple(sorted(labels.items()))]


def total(reader: InMemoryMetricReader, name: str, **labels: str) -> float:
    """Return the sum over all attributes that are not given."""
    return sum(
        one for (other, given), one in values(reader).items() if other == name and labels.items() <= dict(given).items()
    )
