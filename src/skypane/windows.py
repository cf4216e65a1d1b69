"""Sliding windows cut into panes: integer arithmetic only (paper 1, section 2.2).

Windows are aligned as Spark's own window() aligns them: to the epoch, plus an optional start offset.

    window k     [offset + k*slide, offset + k*slide + length)
    pane i       [offset + i*L, offset + (i+1)*L)          with L = gcd(length, slide)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Self

import numpy as np

from skypane.types import ConfigError, Duration, IntArray, Micros, micros

_LONGEST = (1 << 63) - (1 << 59)
"""So that a window of any time of the years 1 to 9999 begins and ends in 64 bits."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `length`, one every `slide`, both in microseconds; panes are their greatest common divisor."""

    length: Micros
    slide: Micros
    offset: Micros = 0

    def __post_init__(self) -> None:
        if abs(self.offset) + abs(self.length) > _LONGEST:
            raise ConfigError(
                f"window and offset must be below 270,000 years together, got length={self.length}, offset={self.offset} "
                f"(microseconds)"
            )
        if not 0 < self.slide <= self.length:
            raise ConfigError(f"need 0 < slide <= length, got slide={self.slide}, length={self.length} (microseconds)")

    @classmethod
    def of(cls, length: Duration, slide: Duration | None = None, offset: Duration = "0 seconds") -> Self:
        """Build from durations as a user writes them; no slide means tumbling windows."""
        w = micros(length, "window")
        return cls(w, w if slide is None else micros(slide, "slide"), micros(offset, "offset"))

    @property
    def pane(self) -> Micros:
        """Length of a pane, L."""
        return gcd(self.length, self.slide)

    @property
    def panes_per_window(self) -> int:
        return self.length // self.pane

    @property
    def panes_per_slide(self) -> int:
        return self.slide // self.pane

    @property
    def overlap(self) -> int:
        """How many windows hold a pane, at most."""
        return -(-self.length // self.slide)

    def panes_at(self, times: IntArray) -> IntArray:
        """Return the pane of each time; floor division, so times before the epoch are right too."""
        panes: IntArray = (times - self.offset) // np.int64(self.pane)
        return panes

    def pane_at(self, time: Micros) -> int:
        """Return the pane that holds `time`."""
        return (time - self.offset) // self.pane

    def pane_start(self, pane: int) -> Micros:
        return self.offset + pane * self.pane

    def pane_end(self, pane: int) -> Micros:
        return self.pane_start(pane + 1)

    def first_open(self, punctuation: Micros) -> int:
        """Return the first pane that is not closed: pane i is closed when its end <= punctuation."""
        return self.pane_at(punctuation)

    def windows_of(self, pane: int) -> range:
        """Return the windows that hold `pane`, oldest first (paper 1, equation 6)."""
        last = pane // self.panes_per_slide
        first = -((self.panes_per_window - 1 - pane) // self.panes_per_slide)
        return range(first, last + 1)

    def panes_of(self, window: int) -> range:
        """Return the panes that make up `window` (paper 1, equation 2)."""
        first = window * self.panes_per_slide
        return range(first, first + self.panes_per_window)

    def bounds(self, window: int) -> tuple[Micros, Micros]:
        """Return [start, end) of `window`."""
        start = self.offset + window * self.slide
        return start, start + self.length
