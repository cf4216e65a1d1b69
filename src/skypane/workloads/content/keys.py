"""Keys of tuples: Zipf popularity, and hot keys that move."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.argument_checks import SECOND, at_least, seconds


def zipf_shares(n: int, exponent: float) -> FloatArray:
    """Return the (n,) shares of ranks 0..n-1, proportional to 1 / (rank + 1)^exponent; they add up to 1."""
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, slots=True)
class Zipf:
    """`keys` keys, numbered from 0, whose popularity falls as 1 / rank^exponent; exponent 0 makes all equally popular.

    With `move_every`, the key of each rank changes at that interval: rank r has key (r + shift) mod keys, and each move
    adds `move_by` to shift, so that hot keys turn cold at once and others take their place.
    """

    keys: int = 1_000
    exponent: float = 1.0
    move_every: Duration | None = None
    move_by: int = 1

    def __post_init__(self) -> None:
        at_least("keys", 1, self.keys)
        at_least("move_by", 1, self.move_by)
        if not 0 <= self.exponent < math.inf:
            raise ConfigError(f"need 0 <= exponent < infinity, got exponent={self.exponent}")
        if self.move_every is not None:
            seconds("move_every", self.move_every)

    def ends(self) -> FloatArray:
        """Return the (keys,) cumulated shares for draw(); compute them once per stream."""
        return np.cumsum(zipf_shares(self.keys, self.exponent))

    def draw(self, times: IntArray, ends: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the key of each tuple; `times` in microseconds since the start, `ends` from ends()."""
        if self.keys == 1:
            return np.zeros(len(times), dtype=np.int64)
        ranks = np.minimum(np.searchsorted(ends, rng.random(len(times)), side="right"), self.keys - 1)
        if self.move_every is None:
            return ranks
        moves = times // round(seconds("move_every", self.move_every) * SECOND)
        return np.asarray((ranks + moves * self.move_by) % self.keys)
