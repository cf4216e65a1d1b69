"""The metrics of running queries as instruments of a program's OpenTelemetry."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from skypane.monitoring.watched_streams import WatchedStream
from skypane.runtime.spark.handle import StreamHandle
from skypane.types import ConfigError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from skypane.opentelemetry.instruments import Instruments


class RegisteredMetrics:
    """The metrics of queries as instruments of a meter provider, until close(): a query that has ended is shown as such.

    A provider has one set of instruments, so those that are registered in one provider share the names of their queries.

    >>> from opentelemetry.metrics import NoOpMeterProvider
    >>> metrics = sp.register_metrics(meter_provider=NoOpMeterProvider())
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best")
    >>> handle = job.start(availableNow=True)
    >>> metrics.watch(handle)
    >>> handle.await_termination()
    True
    >>> metrics.close()
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        """Create the instruments in `meter_provider`, as register_metrics()."""
        self._all = _instruments(meter_provider).streams
        self._watched: dict[str, WatchedStream] = {}
        self._since = time.time()

    def watch(self, handle: StreamHandle, *, name: str | None = None) -> None:
        """Give the metrics of a query, too, with the attribute stream=`name`; those batches count that began after this.

        Without `name`, it is that of the query in Spark, or of its checkpoint's folder. A query with the checkpoint of an
        earlier one continues its counters. Raises ConfigError if another one has the name.
        """
        stream = self._all.watch(handle, name, self._since)
        self._watched[stream.name] = stream

    def close(self) -> None:
        """End the metrics of these queries; batches that are committed later are not counted."""
        while self._watched:
            self._all.end(self._watched.popitem()[1])
        self._since = time.time()

    def __repr__(self) -> str:
        return f"<metrics of {', '.join(sorted(self._watched)) or 'no query yet'} in OpenTelemetry>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def register_metrics(*handles: StreamHandle, meter_provider: MeterProvider | None = None) -> RegisteredMetrics:
    """Give the metrics of running queries to OpenTelemetry; return an object that watch()es further ones.

    meter_provider   where the instruments are created; by default the program's own, opentelemetry.metrics.get_meter_provider()

    Batches count that begin from now on; docs/monitoring.md lists the metrics. Needs the package opentelemetry-api, of
    `pip install 'skypane[opentelemetry]'`. Raises ConfigError if no provider is given or set.

    >>> from opentelemetry.metrics import NoOpMeterProvider  # the program's own provider, else
    >>> metrics = sp.register_metrics(meter_provider=NoOpMeterProvider())  # metrics.watch(job.start()) adds a query
    >>> metrics.close()
    """
    metrics = RegisteredMetrics(meter_provider)
    try:
        for handle in handles:
            metrics.watch(handle)
    except BaseException:
        metrics.close()
        raise
    return metrics


def _instruments(provider: MeterProvider | None) -> Instruments:
    try:
        from skypane.opentelemetry.instruments import instruments_of  # noqa: PLC0415 - its package is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            "metrics for OpenTelemetry need opentelemetry-api, which is not installed: pip install 'skypane[opentelemetry]'"
        ) from error
    return instruments_of(provider)
