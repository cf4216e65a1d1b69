"""Sliding windows cut into panes, in integer arithmetic (paper 1, section 2.2).

Windows are aligned to the epoch plus an optional offset, as by Spark's own window().

    window k     [offset + k*slide, offset + k*slide + length)

Panes are cut only where a window starts or ends. If the slide divides the length, a pane is one slide long, as in the
paper. Otherwise a window ends `head` = length mod slide after another one starts, and each slide is cut in two:

    pane 2j      [offset + j*slide, offset + j*slide + head)
    pane 2j+1    [offset + j*slide + head, offset + (j+1)*slide)

The paper's panes are as long as the greatest common divisor of length and slide. They are never longer than these; for
windows of 1 s that slide by 667 ms there would be 667 of them in a slide.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self, overload

import numpy as np

from skypane.types import ConfigError, Duration, IntArray, Micros, micros

_LONGEST = (1 << 63) - (1 << 59)
"""Limit of offset and length together, so that bounds of windows in the years 1 to 9999 fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `length`, one every `slide`, in microseconds; Windows.of("1 hour", "10 minutes") takes durations.

    >>> windows = sp.Windows.of("1 hour", "10 minutes")
    >>> windows.panes_per_window
    6
    >>> sp.aggregate(offers, time="ts", window=windows, n=sp.count()).count()
    15
    """

    length: Micros
    slide: Micros
    offset: Micros = 0

    def __post_init__(self) -> None:
        if any(isinstance(value, str | timedelta) for value in (self.length, self.slide, self.offset)):
            raise ConfigError(f"Windows() takes microseconds: write Windows.of({self.length!r}, {self.slide!r})")
        if abs(self.offset) + abs(self.length) > _LONGEST:
            raise ConfigError(
                f"window and offset together must be below 270,000 years, got length={self.length}, "
                f"offset={self.offset} (microseconds)"
            )
        if not 0 < self.slide <= self.length:
            raise ConfigError(f"need 0 < slide <= length, got slide={self.slide}, length={self.length} (microseconds)")

    @classmethod
    def of(cls, length: Duration, slide: Duration | None = None, offset: Duration = "0 seconds") -> Self:
        """Return windows built from durations; without a slide they are tumbling windows."""
        w = micros(length, "window")
        return cls(w, w if slide is None else micros(slide, "slide"), micros(offset, "offset"))

    @property
    def head(self) -> Micros:
        """Time from the start of a window to the next end of another one; 0 if both coincide."""
        return self.length % self.slide

    @property
    def panes_per_slide(self) -> int:
        return 2 if self.head else 1

    @property
    def panes_per_window(self) -> int:
        return self.length // self.slide * self.panes_per_slide + (1 if self.head else 0)

    @property
    def longest_pane(self) -> Micros:
        return max(self.head, self.slide - self.head)

    @property
    def overlap(self) -> int:
        """Largest number of windows that hold a pane."""
        return -(-self.length // self.slide)

    def panes_at(self, times: IntArray) -> IntArray:
        """Return the pane of each time; floor division also handles times before the epoch."""
        since = times - self.offset
        slides: IntArray = since // np.int64(self.slide)
        if not self.head:
            return slides
        panes: IntArray = 2 * slides + (since - slides * self.slide >= self.head)
        return panes

    def pane_at(self, time: Micros) -> int:
        """Return the pane that holds `time`."""
        slides, rest = divmod(time - self.offset, self.slide)
        return 2 * slides + (rest >= self.head) if self.head else slides

    @overload
    def pane_start(self, pane: int) -> Micros: ...

    @overload
    def pane_start(self, pane: IntArray) -> IntArray: ...

    def pane_start(self, pane: int | IntArray) -> Micros | IntArray:
        """Return the start of a pane, or of each of an array of panes."""
        per_slide = self.panes_per_slide
        return self.offset + pane // per_slide * self.slide + pane % per_slide * self.head

    @overload
    def pane_end(self, pane: int) -> Micros: ...

    @overload
    def pane_end(self, pane: IntArray) -> IntArray: ...

    def pane_end(self, pane: int | IntArray) -> Micros | IntArray:
        """Return the end of a pane, or of each of an array of panes; it is the start of the next pane."""
        return self.pane_start(pane + 1)

    def first_open(self, punctuation: Micros) -> int:
        """Return the first open pane; a pane is closed if its end <= punctuation."""
        return self.pane_at(punctuation)

    def last_closed(self, punctuation: Micros) -> int:
        """Return the last closed window; a window is closed if its end <= punctuation."""
        return (punctuation - self.offset - self.length) // self.slide

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
