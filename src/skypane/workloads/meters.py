"""Synthetic smart meters of a small town, read every minute through a mesh of data concentrators (paper 2, figure 1).

Each reading reaches one of the nearby concentrators, which stamps it with its own time and forwards its readings in
that order: each input is sorted, and the inputs interleave arbitrarily. Streets have power outages, and some meters
deliver bad readings: null, NaN, negative, or far too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.types import BoolArray, Duration, FloatArray, IntArray, Micros
from skypane.workloads.argument_checks import SECOND, at_least, between, seconds
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases
from skypane.workloads.arrivals.sent import CHUNK
from skypane.workloads.disorder.delays import ExponentialDelay
from skypane.workloads.disorder.held import HeldBack
from skypane.workloads.stream import START, TIMESTAMP, Stream, generator

_READINGS, _DELAYS, _OUTAGES = range(3)

HOUSES: Final = 27
"""Houses per street; 9 streets have the paper's 243 meters."""
CONCENTRATORS: Final = 9
LIMIT: Final = 0.4
"""The most that a house draws in a minute, in kWh."""
_DAY: Final = np.interp(np.arange(24), [0, 5, 7, 9, 12, 16, 19, 22, 24], [0.3, 0.25, 1.4, 0.7, 0.9, 0.7, 1.8, 1.0, 0.3])
"""Consumption of a house in each hour of the day, relative to its mean."""


@dataclass(frozen=True, slots=True)
class Meters(Stream):
    """One reading per meter and minute, in streets of 27 houses.

    meters        number of meters; meter i is house i % 27 of street i // 27
    bad           share of bad meters, of which three readings in ten are wrong
    outage_every  mean time between outages of a street
    outage_for    mean length of an outage; the meters of the street report zero voltage and consumption
    delay         mean time until a concentrator forwards a reading, exponential; the concentrator keeps the order
    rows, length, start: as in Stream
    """

    meters: int = 243
    bad: float = 0.02
    outage_every: Duration = "1 day"
    outage_for: Duration = "15 minutes"
    delay: Duration = "5 seconds"
    seed: int = 0
    rows: int | None = None
    length: Duration | None = None
    start: Micros = START

    def __post_init__(self) -> None:
        self.check_limits()
        at_least("meters", 1, self.meters)
        between("bad", 0, 1, self.bad)
        self._delays()
        self._phases()

    @property
    def schema(self) -> pa.Schema:
        """Columns: time, arrival, concentrator, sequence (its own), meter, street, house, kwh (of a minute), volts."""
        kinds = {"time": TIMESTAMP, "arrival": TIMESTAMP, "concentrator": pa.string(), "sequence": pa.int64()}
        kinds |= dict.fromkeys(("meter", "street", "house"), pa.int64())
        return pa.schema({**kinds, "kwh": pa.float64(), "volts": pa.float64()})

    def by_event(self) -> Iterator[pa.RecordBatch]:
        """Yield the readings ascending in the concentrators' time."""
        return self.within(self._endless())

    @property
    def _streets(self) -> int:
        return -(-self.meters // HOUSES)

    def _delays(self) -> HeldBack:
        return HeldBack("1 hour", "1 minute", ExponentialDelay(self.delay))

    def _phases(self) -> Phases:
        powered, out = (seconds(name, getattr(self, name)) for name in ("outage_every", "outage_for"))
        chance = generator(self.seed, _OUTAGES)
        return Phases(ExponentialPeriods(powered), ExponentialPeriods(out), self._streets, chance)

    def _endless(self) -> Iterator[pa.RecordBatch]:
        rng, phases = generator(self.seed, _READINGS), self._phases()
        delays = self._delays().start(CONCENTRATORS, generator(self.seed, _DELAYS))
        town = _Town.of(self.meters, self.bad, rng)
        sent, newest = np.zeros(CONCENTRATORS, np.int64), np.zeros(CONCENTRATORS, np.int64)
        minutes = max(1, CHUNK // self.meters)
        first = 0
        while True:
            times, meters = town.read_at(first, minutes)
            first += minutes
            power = phases.state(times / SECOND, meters // HOUSES)[0]
            kwh, volts = town.readings(meters, self._hours(times), power, rng)
            heard = (meters // HOUSES + rng.integers(-1, 2, len(meters))) % CONCENTRATORS
            arrivals, sequence = times + delays(times, heard), np.empty_like(times)
            for number in range(CONCENTRATORS):
                mine = np.flatnonzero(heard == number)
                arrivals[mine] = np.maximum(np.maximum.accumulate(arrivals[mine]), newest[number])
                sequence[mine] = sent[number] + np.arange(len(mine))
                sent[number] += len(mine)
                newest[number] = arrivals[mine].max(initial=newest[number])
            yield self._batch(times, arrivals, heard, sequence, meters, kwh, volts)

    def _hours(self, times: IntArray) -> IntArray:
        return np.asarray((times + self.start) // (3600 * SECOND) % 24)

    def _batch(
        self,
        times: IntArray,
        arrivals: IntArray,
        heard: IntArray,
        sequence: IntArray,
        meters: IntArray,
        kwh: pa.Array,
        volts: FloatArray,
    ) -> pa.RecordBatch:
        stamps = [pa.array(column + self.start).view(TIMESTAMP) for column in (times, arrivals)]
        names = pa.array([f"concentrator {number}" for number in range(CONCENTRATORS)]).take(pa.array(heard))
        numbers = [pa.array(column) for column in (sequence, meters, meters // HOUSES, meters % HOUSES)]
        return pa.RecordBatch.from_arrays([*stamps, names, *numbers, kwh, pa.array(volts)], schema=self.schema)


@dataclass(frozen=True, slots=True)
class _Town:
    """The meters, with the consumption of each."""

    #: offset in each minute at which a meter is read, in microseconds; ascending
    moments: IntArray
    #: the meter that is read at each of these moments
    order: IntArray
    #: mean kWh per minute
    usual: FloatArray
    bad: BoolArray

    @classmethod
    def of(cls, meters: int, bad: float, rng: np.random.Generator) -> _Town:
        moments = rng.permutation(np.linspace(0, 60 * SECOND, meters, endpoint=False).astype(np.int64))
        order = np.argsort(moments, kind="stable")
        wrong = np.zeros(meters, np.bool_)
        wrong[rng.choice(meters, round(bad * meters), replace=False)] = True
        return cls(moments[order], order, rng.gamma(4.0, 0.0015, meters), wrong)

    def read_at(self, first: int, minutes: int) -> tuple[IntArray, IntArray]:
        """Return the times of the readings in `minutes` minutes from minute `first` on, and their meters."""
        starts = (first + np.arange(minutes)) * 60 * SECOND
        return (starts[:, None] + self.moments).reshape(-1), np.tile(self.order, minutes)

    def readings(
        self, meters: IntArray, hours: IntArray, power: BoolArray, rng: np.random.Generator
    ) -> tuple[pa.Array, FloatArray]:
        """Return kWh and volts as the meters report them."""
        n = len(meters)
        kettle = (rng.random(n) < 0.01) * rng.uniform(0.02, 0.06, n)
        kwh = (
            np.round(np.minimum(self.usual[meters] * _DAY[hours] * rng.gamma(8.0, 1 / 8, n) + kettle, LIMIT), 5) * power
        )
        volts = np.round(rng.normal(230.0, 2.0, n), 1) * power
        wrong = self.bad[meters] & (rng.random(n) < 0.3)
        kinds = rng.integers(0, 4, n)
        reported = np.where(wrong, np.array([0.0, np.nan, -1.0, 9999.0])[kinds], kwh)
        return pa.array(reported, mask=wrong & (kinds == 0), from_pandas=False), volts
