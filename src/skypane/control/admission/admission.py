"""Admission as a control policy: once a period, decide which reader reads which streams (paper 3, section 2).

    policy = Admission(capacity=10_000)
    state = policy.observe(state, PeriodObservation(rates, queues))  # a period: rates of streams, queues of readers
    state, decision = policy.decide(state, {"s1": MetaData()})       # the current streams, with their meta-data

Every stream is accepted. A stream that is no longer named has left, and its history is discarded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from skypane.control.admission.assignment import Assignment, give_back, place
from skypane.control.admission.expectation import expectation
from skypane.control.admission.forecasting import Forecaster, HoltForecaster
from skypane.control.admission.metadata import MetaData, averages
from skypane.control.admission.packing import fewest_bins
from skypane.control.admission.strategies import STRATEGIES, Reader, ReaderCapacity, Strategy, StreamLoad
from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.types import ConfigError, Duration, FloatArray, micros
from skypane.wording import count


@dataclass(frozen=True, slots=True)
class PeriodObservation:
    """Measurements of one period.

    rates    rows per second of each stream; 0 for a stream that is missing
    queues   reader -> rows that wait at it at the end of the period
    """

    rates: Mapping[str, float]
    queues: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, values in (("rate of", self.rates), ("queue of reader", self.queues)):
            for name, value in values.items():
                if not 0 <= value < math.inf:
                    raise ConfigError(f"{what} {name} must be finite and not negative, got {value}")


@dataclass(frozen=True, slots=True)
class Profile(JsonState):
    """History of a stream: its rates in the last periods, oldest first."""

    name: str
    rates: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderState(JsonState):
    """A reader: its streams, and the smoothed length of its queue in rows."""

    number: int
    streams: tuple[str, ...]
    waiting: float = 0.0


@dataclass(frozen=True, slots=True)
class AdmissionState(JsonState):
    """State of the policy."""

    profiles: tuple[Profile, ...] = ()
    readers: tuple[ReaderState, ...] = ()


@dataclass(frozen=True)
class Admission(Policy[AdmissionState, PeriodObservation, Mapping[str, MetaData], Assignment]):
    """Paper 3's Algorithm 1, once a period.

    capacity     C: rows per second of one reader; None: the load of all streams is divided evenly among `max_readers`
    even         share by which a reader may exceed an even share; with less, streams would move because of noise
    max_readers  largest number of readers; None: unlimited
    strategy     PAR, ARI, ARD, DRF or DRF-M
    every        length of a period
    ahead        k: number of periods that forecasts look ahead
    latency      L: bound on the waiting time of a row at a reader
    accepts      share of C below which a reader takes more streams
    headroom     share of C that stays free when streams are packed
    give_back    share of C up to which other readers take the streams of a reader that is removed; None: none is removed
    smoothing    weight of the newest queue sample in the smoothed queue
    unknown      share of C that a stream counts for while no stream has a known rate
    history      number of periods that are kept
    """

    capacity: float | None = None
    even: float = 0.05
    max_readers: int | None = None
    strategy: str = "DRF-M"
    every: Duration = "10 seconds"
    ahead: int = 3
    latency: Duration = "5 seconds"
    accepts: float = 1.0
    headroom: float = 0.0
    give_back: float | None = None
    smoothing: float = 0.5
    unknown: float = 0.1
    history: int = 32
    forecaster: Forecaster = field(default_factory=HoltForecaster)

    State = AdmissionState

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ConfigError(f"strategy must be one of {', '.join(STRATEGIES)}, got {self.strategy!r}")
        if self.capacity is None and self.max_readers is None:
            raise ConfigError(
                "need capacity, the rows per second that one reader reads, or max_readers, the largest number of readers"
            )
        if micros(self.every, "every") <= 0:
            raise ConfigError(f"every must be longer than 0, got {self.every!r}")
        for name in ("ahead", "history"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} counts periods, need at least 1, got {getattr(self, name)}")
        for name in ("headroom", "unknown", "give_back", "even"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise ConfigError(f"{name} is a share of the capacity, need 0 <= {name} < 1, got {share}")
        if not 0 < self.smoothing <= 1:
            raise ConfigError(f"smoothing is a weight, need 0 < smoothing <= 1, got {self.smoothing}")
        self._limits(1.0 if self.capacity is None else self.capacity)

    def init(self) -> AdmissionState:
        return AdmissionState()

    def observe(self, state: AdmissionState, measured: PeriodObservation) -> AdmissionState:
        names = {profile.name for profile in state.profiles}
        known = (*state.profiles, *(Profile(name) for name in measured.rates if name not in names))
        profiles = tuple(
            replace(profile, rates=(*profile.rates, measured.rates.get(profile.name, 0.0))[-self.history :])
            for profile in known
        )
        readers = tuple(
            replace(
                reader,
                waiting=reader.waiting + self.smoothing * (measured.queues.get(reader.number, 0.0) - reader.waiting),
            )
            for reader in state.readers
        )
        return AdmissionState(profiles, readers)

    def decide(
        self, state: AdmissionState, known: Mapping[str, MetaData]
    ) -> tuple[AdmissionState, Decision[Assignment]]:
        """Return the state after the decision, and the assignment of the current streams."""
        profiles = tuple(profile for profile in state.profiles if profile.name in known)
        streams = self.streams(profiles, known)
        strategy = STRATEGIES[self.strategy]
        limits = self._limits(self.capacity or self._even_share(strategy.load(streams.values())))
        readers = self._readers(state, streams, limits)
        settled = {stream.name for reader in readers for stream in reader.streams}
        new = [stream for name, stream in streams.items() if name not in settled]
        assignment = place(strategy, readers, new, limits)
        note = ""
        if self.give_back is not None and not assignment.moves:
            fewer = give_back(strategy, readers, limits, self.give_back)
            assignment, note = (fewer, "a reader removed") if fewer is not None else (assignment, "")
        waiting = {reader.number: reader.waiting for reader in state.readers}
        after = AdmissionState(
            profiles,
            tuple(ReaderState(number, names, waiting.get(number, 0.0)) for number, names in assignment.readers.items()),
        )
        over = [reader for reader in readers if Strategy.is_overloaded(strategy, reader, limits)]
        counted = [strategy.counts(stream) for stream in streams.values()]
        figures = {
            "streams": float(len(streams)),
            "readers": float(len(assignment.readers)),
            "redirected": float(len(assignment.redirected)),
            "overloaded": float(len(over)),
            "load": math.fsum(counted),
            "capacity": limits.capacity,
            "fewest readers": float(fewest_bins(counted, limits.capacity)),
        }
        return after, Decision("admission", assignment, _because(strategy, over, assignment, limits, note), figures)

    def streams(self, profiles: tuple[Profile, ...], known: Mapping[str, MetaData]) -> dict[str, StreamLoad]:
        """Return the load of each stream before the next period, by name, in the order of names."""
        seen = {profile.name: profile.rates for profile in profiles}
        defaults = averages(known.values(), seen.values())
        names = sorted(known)
        soon = self.forecaster.forecast(self._histories([seen.get(name, ()) for name in names]), self.ahead)
        return {
            name: self._stream(name, seen.get(name, ()), row, known[name], defaults)
            for name, row in zip(names, soon.tolist(), strict=True)
        }

    def _stream(
        self, name: str, rates: tuple[float, ...], forecasts: list[float], meta: MetaData, defaults: MetaData
    ) -> StreamLoad:
        every = micros(self.every) / 1e6
        if not rates:
            average = next(
                (rate for rate in (meta.expected, meta.average, defaults.average) if rate is not None),
                self.unknown * (self.capacity or 1.0),
            )
            forecasts = [average] * self.ahead
        average = rates[-1] if rates else forecasts[0]
        return StreamLoad(name, average, forecasts[0], forecasts[-1], expectation(meta, rates, forecasts, every))

    def _histories(self, rates: list[tuple[float, ...]]) -> FloatArray:
        longest = max(map(len, rates), default=0)
        table = np.full((len(rates), max(longest, 1)), np.nan)
        for row, values in zip(table, rates, strict=True):
            if values:
                row[-len(values) :] = values
        return table

    def _readers(
        self, state: AdmissionState, streams: Mapping[str, StreamLoad], limits: ReaderCapacity
    ) -> list[Reader]:
        readers = [
            Reader(
                reader.number,
                tuple(streams[name] for name in reader.streams if name in streams),
                reader.waiting / limits.capacity,
            )
            for reader in state.readers
        ]
        return [reader for reader in readers if reader.streams]

    def _even_share(self, load: float) -> float:
        return max(load, 1e-9) / (self.max_readers or 1) * (1 + self.even)

    def _limits(self, capacity: float) -> ReaderCapacity:
        return ReaderCapacity(
            capacity * (1 - self.headroom), micros(self.latency, "latency") / 1e6, self.accepts, self.max_readers
        )


def _because(strategy: Strategy, over: list[Reader], assignment: Assignment, limits: ReaderCapacity, note: str) -> str:
    """Return the reason in one line: overloaded readers, and the streams that move."""
    parts = [
        f"reader {reader.number} at {strategy.load(reader.streams):.4g} of {limits.capacity:.4g} rows/s"
        + (f", rows wait {reader.latency:.2g} s" if reader.latency > limits.latency else "")
        for reader in over[:3]
    ] or ["no reader is overloaded"]
    redirected = assignment.redirected
    parts += [f"{move.stream} from {move.source} to {move.to}" for move in redirected[:3]]
    if len(redirected) > 3:
        parts.append(f"{count(len(redirected) - 3)} more move")
    if len(assignment.moves) > len(redirected):
        parts.append(f"{count(len(assignment.moves) - len(redirected))} new")
    if assignment.added:
        parts.append(f"added {', '.join(map(str, assignment.added))}")
    if not assignment.moves:
        parts.append("nothing moves")
    return f"{strategy.name}: {'; '.join([*parts, note] if note else parts)}"
