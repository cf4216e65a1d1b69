"""Delayed delivery: a source holds its tuples back, then releases them at once, which is how real bursts arise.

    events      x x x x x x x x x x x x
    delivery    x x x [ . . . ]XXXX x x x       held between the brackets

Paper 1, section 6.1: in the soccer streams, bursts coincide with the phases in which tuples have long delays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skypane.types import Duration, IntArray
from skypane.workloads.argument_checks import SECOND, seconds
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases
from skypane.workloads.disorder.delays import DelayOf, Delays, NoDelay


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Each source delivers for `every` on average, then holds tuples back for `hold` on average, both exponential.

    Tuples of a hold are released when it ends; the `usual` delays are added to those of all tuples.
    """

    every: Duration = "10 seconds"
    hold: Duration = "1 second"
    usual: Delays = field(default_factory=NoDelay)

    def __post_init__(self) -> None:
        seconds("every", self.every)
        seconds("hold", self.hold)

    @property
    def held_share(self) -> float:
        """The share of tuples that are held back, if their event times are evenly spread."""
        every, hold = seconds("every", self.every), seconds("hold", self.hold)
        return hold / (every + hold)

    @property
    def mean(self) -> float:
        """Mean seconds that holds add to a delay, for evenly spread tuples: the rest of a hold is exponential too."""
        return self.held_share * seconds("hold", self.hold)

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:
        """Return the function that draws the delays of `streams` sources, each of which holds back independently."""
        flowing = ExponentialPeriods(seconds("every", self.every))
        holding = ExponentialPeriods(seconds("hold", self.hold))
        phases = Phases(flowing, holding, streams, rng)
        usual = self.usual.start(streams, rng)

        def delays(times: IntArray, sources: IntArray) -> IntArray:
            flows, until = phases.state(times / SECOND, sources)
            released = np.rint(until * SECOND).astype(np.int64)
            return np.where(flows, 0, np.maximum(released - times, 0)) + usual(times, sources)

        return delays
