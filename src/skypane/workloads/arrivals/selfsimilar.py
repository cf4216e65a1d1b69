"""Arrivals that are bursty at all scales, by long memory or by heavy tails (paper 5, sections 2.2 and 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.argument_checks import at_least, positive, seconds
from skypane.workloads.arrivals.long_memory import fractional_noise
from skypane.workloads.arrivals.phases import ParetoPeriods
from skypane.workloads.arrivals.profiles import constant_pieces, times_of


@dataclass(frozen=True, slots=True)
class SelfSimilar:
    """Self-similar arrivals: a Poisson process whose rate is the exponential of fractional noise (long_memory.py).

    rate      mean tuples per second
    hurst     Hurst parameter, in (0.5, 1)
    period    duration for which the rate stays constant: the smallest scale
    streams   the rate varies like the sum of so many on/off streams, by rate / sqrt(streams): fewer vary more

    Counts over m periods vary as m^hurst for all m >= 1 if rate * period exceeds `streams`; otherwise, the variation of
    the Poisson process itself hides this at small m.

    A superposition of on/off streams with Pareto periods, the usual model, has this exponent only in the limit: its
    deviation from the power law below a period fades as m^(1 - 2 hurst). With the same parameters it was measured at
    0.74 for a requested 0.6, and at 0.86 for 0.8.
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

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        # the variance of the log-rate at which the rate's squared coefficient of variation is 1 / streams
        spread = math.log1p(1 / self.streams)

        def rates() -> Iterator[FloatArray]:
            for noise in fractional_noise(self.hurst, rng):
                yield self.rate * np.exp(math.sqrt(spread) * noise - spread / 2)

        return times_of(constant_pieces(rates(), seconds("period", self.period)), rng)


@dataclass(frozen=True, slots=True)
class ParetoSlots:
    """Independent Pareto numbers of arrivals per time slot (paper 5, section 5.2: slots of 1 ms).

    The numbers have the tail exponent a = 3 - 2 hurst, 1 < a < 2: the mean is finite (`rate` tuples per second), the
    variance is not, so that sums over longer slots hardly become smoother. Numbers of different slots are independent:
    there are bursts at all scales but no long memory, and an estimator of H over time yields 0.5, as it does for the
    traces published with the paper. The parameter can be recovered from the tail (see estimators.tail_exponent). For
    long memory use SelfSimilar.
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
        """The tail exponent a of the numbers per slot."""
        return 3 - 2 * self.hurst

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        per_slot = ParetoPeriods(self.rate, self.tail)

        def rates() -> Iterator[FloatArray]:
            while True:
                yield per_slot.lengths((256,), rng)

        return times_of(constant_pieces(rates(), seconds("slot", self.slot)), rng)


def _check_hurst(hurst: float) -> None:
    if not 0.5 < hurst < 1:
        raise ConfigError(f"need 0.5 < hurst < 1, got hurst={hurst}; for 0.5 use Poisson arrivals")
