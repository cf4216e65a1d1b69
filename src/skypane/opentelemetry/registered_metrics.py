"""The metrics of running queries as instruments of a program's OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from skypane.runtime.spark.handle import StreamHandle
from skypane.types import ConfigError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from skypane.opentelemetry.instruments import Instruments


class RegisteredMetrics:
    """The metrics of queries as instruments of a meter provider, until close(): a query that has ended is shown as such.

    A provider has one set of instruments: those that are registered in one provider share their queries, and close() of one ends all.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        """Create the instruments in `meter_provider`, as register_metrics()."""
        self._instruments = _instruments(meter_provider)

    def watch(self, handle: StreamHandle, *, name: str | None = None) -> None:
        """Give the metrics of a query, too, with the attribute stream=`name`; those batches count that began after this.

        Without `name`, it is that of the query in Spark, or of its checkpoint's folder. A query with the checkpoint of an
        earlier one continues its counters. Raises ConfigError if another one has the name.
        """
        self._instruments.streams.watch(handle, name)

    def close(self) -> None:
        """Give the metrics of no query any more; batches that are committed later are not counted."""
        self._instruments.streams.close()

    def __repr__(self) -> str:
        return f"<metrics of {', '.join(self._instruments.streams.names) or 'no query yet'} in OpenTelemetry>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def register_metrics(*handles: StreamHandle, meter_provider: MeterProvider | None = None) -> RegisteredMetrics:
    """Give the metrics of running queries to OpenTelemetry; return an object that watch()es further ones.

    meter_provider   where the instruments are created; by default the program's own, opentelemetry.metrics.get_meter_provider()

    Batches count that begin from now on; docs/monitoring.md lists the metrics. Needs the package opentelemetry-api, of
    `pip install 'skypane[opentelemetry]'`. Raises ConfigError if no provider is given or set.
    """
    metrics = RegisteredMetrics(meter_provider)
    for handle in handles:
        metrics.watch(handle)
    return metrics


def _instruments(provider: MeterProvider | None) -> Instruments:
    try:
        from skypane.opentelemetry.instruments import instruments_of  # noqa: PLC0415 - its package is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            "metrics for OpenTelemetry need opentelemetry-api, which is not installed: pip install 'skypane[opentelemetry]'"
        ) from error
    return instruments_of(provider)
