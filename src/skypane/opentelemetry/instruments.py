"""The instruments of a meter provider: one set of each provider, because an instrument cannot be taken back."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import (
    CallbackOptions,
    Meter,
    MeterProvider,
    NoOpMeterProvider,
    Observation,
    get_meter_provider,
)

from skypane.monitoring.measures import RUNNING, STREAM, Measure
from skypane.monitoring.series import Series, StreamSeries
from skypane.monitoring.watched_streams import WatchedStreams
from skypane.opentelemetry.instrument_series import ObservedSeries, RecordedSeries
from skypane.opentelemetry.names import SCOPE, described
from skypane.types import ConfigError

PATIENCE: Final = 5.0
"""Seconds for which a reader waits for Spark to say whether the queries run, unless it allows less."""


class Instruments:
    """All measures as instruments of one meter, and the queries whose values they have."""

    def __init__(self, meter: Meter) -> None:
        lock = Lock()

        def series_of(measure: Measure[Any], labels: tuple[str, ...]) -> Series:
            if measure.kind == "histogram":
                return RecordedSeries(measure, labels, meter)
            return ObservedSeries(measure, labels, meter, lock)

        #: the queries whose metrics the instruments have
        self.streams = WatchedStreams(StreamSeries(series_of), lock)
        name, unit = described(RUNNING)
        meter.create_observable_gauge(name, [self._running], unit, RUNNING.meaning)

    def _running(self, options: CallbackOptions) -> Iterable[Observation]:
        running = self.streams.running(min(PATIENCE, options.timeout_millis / 1_000))
        return [Observation(int(runs), {STREAM: name}) for name, runs in running.items()]


_known: Final[WeakKeyDictionary[MeterProvider, Instruments]] = WeakKeyDictionary()
_creating: Final = Lock()


def instruments_of(provider: MeterProvider | None) -> Instruments:
    """Return the instruments of a provider, by default of the program's own; raise ConfigError if it has none yet."""
    provider = get_meter_provider() if provider is None else provider
    _check_set(provider)
    with _creating:
        known = _known.get(provider)
        if known is None:
            known = _known[provider] = Instruments(provider.get_meter(SCOPE, _version()))
    return known


def _check_set(provider: MeterProvider) -> None:
    """Raise ConfigError for the API's placeholder of a provider that is not set yet: its instruments would be silent."""
    if type(provider).__module__.startswith("opentelemetry.metrics") and not isinstance(provider, NoOpMeterProvider):
        raise ConfigError(
            "OpenTelemetry has no MeterProvider yet, so metrics would go nowhere: call "
            "opentelemetry.metrics.set_meter_provider() before, give one as meter_provider=, or start the program by "
            "opentelemetry-instrument"
        )


def _version() -> str | None:
    """Return the version of this package; None if it runs without being installed, as from a zip file."""
    try:
        return version("skypane")
    except PackageNotFoundError:
        return None
