"""The `window` section: sliding windows over an event-time column."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from skypane.jobs.fields import Section, Time
from skypane.types import ConfigError, micros
from skypane.windows import Windows


class LengthsSection(Section):
    """Length, slide and offset of sliding windows, aligned like those of Spark's window()."""

    #: length of a window
    length: Time
    #: distance between the starts of consecutive windows; defaults to the length: tumbling windows
    slide: Time | None = None
    #: shift of all windows from their alignment
    offset: Time = "0 seconds"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.slide is not None and not 0 < micros(self.slide) <= micros(self.length):
            raise ConfigError(f"need 0 < slide <= length, got slide {self.slide!r}, length {self.length!r}")
        self.build()
        return self

    def build(self) -> Windows:
        """Return the windows."""
        return Windows.of(self.length, self.slide, self.offset)


class WindowSection(LengthsSection):
    """Sliding windows over an event-time column."""

    #: column of the event time, a timestamp
    time: str


class OwnWindowSection(LengthsSection):
    """The windows of one of several queries, over the event-time column of all."""

    #: defaults to the column of the job's `window`
    time: str | None = None
