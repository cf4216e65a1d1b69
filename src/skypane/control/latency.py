"""The latency of answers, as a histogram: the seconds from the arrival of the row that completes a window to the commit.

    bucket i   latencies up to 1 ms x 2^(i/8): 1 ms, 1.09 ms, 1.19 ms, ... up to twelve days; one more for longer ones

All histograms have the same buckets, so they are merged by adding their counts.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from operator import mul
from typing import Final

from skypane.snapshots import JsonState

_STEP: Final = math.sqrt(math.sqrt(math.sqrt(2.0)))
BOUNDS: Final = tuple(accumulate(repeat(_STEP, 8 * 30), mul, initial=0.001))
"""Largest latency of each bucket, in seconds, without that of the last one."""


@dataclass(frozen=True, slots=True)
class Latencies(JsonState):
    """How many answers had which latency.

    counts   answers by the number of their bucket
    longest  the longest latency, in seconds

    >>> taken = Latencies.of(0.2, answers=95).merge(Latencies.of(4.0, answers=5))
    >>> taken.answers, round(taken.p50, 2), taken.p99
    (100, 0.22, 4.0)
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    longest: float = 0.0

    @classmethod
    def of(cls, seconds: float, answers: int = 1) -> Latencies:
        """Return the histogram of so many answers with one latency."""
        return cls({bisect_left(BOUNDS, seconds): answers}, seconds) if answers else cls()

    def merge(self, other: Latencies) -> Latencies:
        """Return the histogram of the answers of both."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        return Latencies(dict(sorted(counts.items())), max(self.longest, other.longest))

    @property
    def answers(self) -> int:
        """Number of answers."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """Return the latency that this share of the answers did not exceed, or up to 9 % more; None without answers."""
        wanted, seen = max(1, math.ceil(share * self.answers)), 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted:
                return min(BOUNDS[bucket], self.longest) if bucket < len(BOUNDS) else self.longest
        return None

    @property
    def p50(self) -> float | None:
        """The median latency in seconds."""
        return self.quantile(0.5)

    @property
    def p95(self) -> float | None:
        """The latency in seconds that 95 % of the answers did not exceed."""
        return self.quantile(0.95)

    @property
    def p99(self) -> float | None:
        """The latency in seconds that 99 % of the answers did not exceed."""
        return self.quantile(0.99)
