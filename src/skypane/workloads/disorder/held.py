"""Delayed delivery: a source holds its tuples back, then releases them at once; this is how real bursts come about.

    events      x x x x x x x x x x x x
    delivery    x x x [ . . . ]XXXX x x x       held between the brackets

Paper 1, section 6.1: in the soccer streams, phases of bursty arrivals are those in which tuples come with long delays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skypane.types import Duration, IntArray
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases
from skypane.workloads.checks import SECOND, seconds
from skypane.workloads.disorder.delays import DelayOf, Delays, NoDelay


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Each source delivers for `every` on average, then holds back for `hold`, both exponential.

    What happens while it holds back arrives when the hold ends, after which `usual` delays apply to it as to all others.
    """

    every: Duration = "10 seconds"
    hold: Duration = "1 second"
    usual: Delays = field(default_factory=NoDelay)

    def __post_init__(self) -> None:
        seconds("every", self.every)
        seconds("hold", self.hold)

    @property
    def held_share(self) -> float:
        """The share of tuples that are held back, if they come evenly."""
        every, hold = seconds("every", self.every), seconds("hold", self.hold)
        return hold / (every + hold)

    @property
    def mean(self) -> float:
        """Mean seconds that holds add to a delay, if tuples come evenly: what is left of a hold is exponential again."""
        return self.held_share * seconds("hold", self.hold)

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:
        """Return the delays of that many sources, which hold back independently of each other."""
        flowing = ExponentialPeriods(seconds("every", self.every))
        holding = ExponentialPeriods(seconds("hold", self.hold))
        phases = Phases(flowing, holding, streams, rng)
        usual = self.usual.start(streams, rng)

        def delays(times: IntArray, sources: IntArray) -> IntArray:
            flows, until = phases.state(times / SECOND, sources)
            released = np.rint(until * SECOND).astype(np.int64)
            return np.where(flows, 0, np.maximum(released - times, 0)) + usual(times, sources)

        return delays
