"""What Prometheus would read: the text of an exporter or an endpoint, parsed."""

from __future__ import annotations

from typing import TypeAlias
from urllib.request import urlopen

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from skypane.metrics import BatchMetrics
from skypane.prometheus.exporter import Exporter

Sample: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""A name, and its labels in order."""


def families(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))


def text_of(exporter: Exporter) -> str:
    return generate_latest(exporter.registry).decode()


def exposed(*batches: BatchMetrics, stream: str = "s") -> str:
    """Return the text of an exporter that has had batches of a stream."""
    exporter = Exporter()
    for each in batches:
        exporter.streams.add(stream, each)
    return text_of(exporter)


def text_at(url: str) -> str:
    with urlopen(url, timeout=60) as answer:  # noqa: S310 - the address is that of a server of the test
        text: str = answer.read().decode()
        return text


def values(text: str) -> dict[Sample, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(text)
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return values(text)[name, tuple(sorted(labels.items()))]


def total(text: str, name: str, **labels: str) -> float:
    """Return the sum over all labels that are not given."""
    return sum(
        one for (other, given), one in values(text).items() if other == name and labels.items() <= dict(given).items()
    )
