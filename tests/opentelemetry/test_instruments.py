"""Batches as OpenTelemetry sees them: its own exporter to Prometheus gives what skypane's gives."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from prometheus_client import CollectorRegistry, generate_latest
from tests.opentelemetry.collected import metrics, provider_and_reader, total, values
from tests.prometheus import scraped
from tests.prometheus.made import batches, full, of_two_queries
from tests.prometheus.scraped import Sample
from tests.reporting.made import batch

from skypane.metrics import BatchMetrics
from skypane.monitoring.measures import EACH, RUNNING, SECONDS, Measure
from skypane.monitoring.series import MOST, OTHER
from skypane.opentelemetry.instruments import instruments_of
from skypane.opentelemetry.names import described

MEASURES: tuple[Measure[Any], ...] = (RUNNING, *(measure for measure, _ in EACH))


def exported(*given: BatchMetrics) -> dict[Sample, float]:
    """Return what OpenTelemetry's exporter to Prometheus serves of batches of the stream "s"."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=registry)
    streams = instruments_of(MeterProvider([reader], shutdown_on_exit=False)).streams
    for each in given:
        streams.add("s", each)
    return scraped.values(generate_latest(registry).decode())


def served(*given: BatchMetrics) -> dict[Sample, float]:
    """Return what skypane serves to Prometheus itself, without what is not known."""
    return {sample: one for sample, one in scraped.values(scraped.exposed(*given)).items() if not math.isnan(one)}


@given(st.lists(batches(), min_size=1, max_size=6))
def test_prometheus_gets_the_same_from_either(given: list[BatchMetrics]):
    """Names, units as suffixes, labels, buckets and values: dashboards and alert rules are good for both."""
    assert exported(*given) == pytest.approx(served(*given))


@pytest.mark.parametrize("given", [full(), of_two_queries()], ids=["full", "of two queries"])
def test_prometheus_gets_the_same_of_each_field_from_either(given: BatchMetrics):
    assert exported(given) == served(given)


def test_each_measure_is_an_instrument_with_its_meaning_and_nothing_else_is():
    provider, reader = provider_and_reader()
    instruments_of(provider).streams.add("s", full())
    found = metrics(reader)
    kinds = {"counter": "Sum", "gauge": "Gauge", "histogram": "Histogram"}
    for measure in MEASURES:
        name, unit = described(measure)
        if measure is RUNNING:  # a value for each query that is watched, and there is none
            assert name not in found
            continue
        one = found.pop(name)
        assert (one.unit, one.description, type(one.data).__name__) == (unit, measure.meaning, kinds[measure.kind])
        assert one.data.data_points
    assert not found


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_names_follow_the_conventions(measure: Measure[Any]):
    """OpenTelemetry's: a namespace, the unit by UCUM beside the name and not in it, annotations in the singular."""
    name, unit = described(measure)
    assert re.fullmatch(r"skypane\.[a-z]+(_[a-z]+)*", name)
    assert not name.endswith(("_total", "_seconds", "_bytes"))
    assert re.fullmatch(r"|s|By|1|\{[a-z]+(?<!s)\}", unit)
    assert (unit == "1") == name.endswith("_ratio")


def test_names_are_different():
    assert len({described(measure).name for measure in MEASURES}) == len(MEASURES)


def test_a_histogram_has_the_buckets_of_the_table():
    provider, reader = provider_and_reader()
    instruments_of(provider).streams.add("s", batch(seconds={"total": 0.3}))
    (point,) = metrics(reader)["skypane.batch_duration"].data.data_points
    assert isinstance(point, HistogramDataPoint)
    assert tuple(point.explicit_bounds) == SECONDS
    assert point.bucket_counts[SECONDS.index(0.5)] == point.count == 1


def test_what_is_not_known_is_left_out_and_logged_by_nobody(caplog: pytest.LogCaptureFixture):
    """The SDK would warn at each reading of a number that is none."""
    provider, reader = provider_and_reader()
    instruments_of(provider).streams.add("s", full())
    levels = {dict(labels)["level"] for name, labels in values(reader) if name == "skypane.utilization_ratio"}
    assert levels == {"plq"}
    assert not caplog.records


def test_more_sources_than_a_backend_should_keep_are_counted_together():
    provider, reader = provider_and_reader()
    streams = instruments_of(provider).streams
    for number in range(2):
        late = {f"{number}-{one}": 2 for one in range(MOST)}
        streams.add("s", batch(late_by_source=late, late_rows=2 * MOST))
    sources = [dict(labels)["source"] for name, labels in values(reader) if name == "skypane.late_rows"]
    assert len(sources) == MOST + 1
    assert total(reader, "skypane.late_rows") == 4 * MOST
    assert total(reader, "skypane.late_rows", source=OTHER) == 2 * MOST + 2
