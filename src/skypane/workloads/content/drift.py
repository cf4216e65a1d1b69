"""Points whose correlation changes over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.argument_checks import SECOND, seconds
from skypane.workloads.content.points import DISTRIBUTIONS, Kind, check_dimensions, check_kind


@dataclass(frozen=True, slots=True)
class Drifting:
    """Points that pass through the classic distributions in `kinds`, cyclically, once per `period`.

    At the moment period * i / len(kinds), all tuples are of kind i. Between two moments, the probability that a tuple
    is of the next kind grows linearly from 0 to 1, so that the correlation of the mixture changes steadily.
    """

    kinds: tuple[Kind, ...] = ("correlated", "independent", "anticorrelated", "independent")
    period: Duration = "1 minute"
    d: int = 8

    def __post_init__(self) -> None:
        check_dimensions(self.d)
        seconds("period", self.period)
        if len(self.kinds) < 2:
            raise ConfigError(f"need two kinds or more to pass between, got kinds={self.kinds}")
        for kind in self.kinds:
            check_kind(kind)

    def draw(self, times: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return (n, d) points, Fortran-ordered, of tuples at `times`, in microseconds since the start."""
        period = round(seconds("period", self.period) * SECOND)
        place = (times % period) / period * len(self.kinds)
        moment = place.astype(np.int64)
        kind = (moment + (rng.random(len(times)) < place - moment)) % len(self.kinds)
        points = np.empty((self.d, len(times)))
        for number, name in enumerate(self.kinds):
            rows = np.flatnonzero(kind == number)
            points[:, rows] = DISTRIBUTIONS[name](len(rows), self.d, rng).T
        return points.T
