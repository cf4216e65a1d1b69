"""Arrivals that are bursty at every scale: with long memory, or with heavy tails (paper 5, sections 2.2 and 5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.arrivals.phases import ParetoPeriods, Phases, pieces, total
from skypane.workloads.arrivals.profiles import constant_pieces, times_of
from skypane.workloads.checks import at_least, positive, seconds


@dataclass(frozen=True, slots=True)
class SelfSimilar:
    """Arrivals that look alike at every scale: on/off streams with Pareto periods, superposed (paper 5, section 2.2).

    With P(period > x) ~ x^-a, 1 < a < 2, the sum of many such streams tends to fractional noise with
    H = (3 - a) / 2 (M. Taqqu, W. Willinger, R. Sherman, "Proof of a fundamental result in self-similar traffic modeling",
    SIGCOMM CCR 27(2), 1997). `rate`: tuples per second over all; `hurst` in (0.5, 1); `period`: mean length of on and
    of off periods; `streams`: how many are superposed, fewer vary more.
    """

    rate: float
    hurst: float = 0.75
    period: Duration = "200 ms"
    streams: int = 32

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        seconds("period", self.period)
        at_least("streams", 1, self.streams)
        _check_hurst(self.hurst)

    @property
    def tail(self) -> float:
        """The exponent a of the periods' lengths."""
        return 3 - 2 * self.hurst

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        period = seconds("period", self.period)
        law = ParetoPeriods(period, self.tail)
        phases = Phases(law, law, self.streams, rng)
        rates = np.full(self.streams, 2 * self.rate / self.streams)
        return times_of(total(pieces(phases, rates, 16 * period)), rng)


@dataclass(frozen=True, slots=True)
class ParetoSlots:
    """Independent Pareto amounts of arrivals per time slot (paper 5, section 5.2: slots of 1 ms).

    The amounts have the tail exponent a = 3 - 2 hurst, 1 < a < 2: a finite mean (`rate` tuples per second) and no finite
    variance, so that sums over longer slots hardly grow smoother. Amounts of different slots are independent: there
    are bursts at each scale, but no long memory, and an estimator of H over time finds 0.5 here as it does in the traces
    published with the paper. What gives back the parameter is the tail (see estimators.tail_exponent). For memory take
    SelfSimilar.
    """

    rate: float
    hurst: float = 0.75
    slot: Duration = "1 ms"

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        seconds("slot", self.slot)
        _check_hurst(self.hurst)

    @property
    def tail(self) -> float:
        """The exponent a of the amounts per slot."""
        return 3 - 2 * self.hurst

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        law = ParetoPeriods(self.rate, self.tail)

        def rates() -> Iterator[FloatArray]:
            while True:
                yield law.lengths((256,), rng)

        return times_of(constant_pieces(rates(), seconds("slot", self.slot)), rng)


def _check_hurst(hurst: float) -> None:
    if not 0.5 < hurst < 1:
        raise ConfigError(f"need 0.5 < hurst < 1, got hurst={hurst}; 0.5 is what Poisson arrivals have")
