"""When rows that wait for their file become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skypane.types import ConfigError, Duration, Length, micros

BYTES: Final = 128 << 20
"""Bytes of a file at which it is written before its time."""

PARTS: Final = 1_000
"""Parts of a file at which it is written before its time: each manifest names all of them."""


@dataclass(frozen=True, slots=True)
class Roll:
    """A file is written when its oldest rows have waited for `every`, or when it has `size` bytes, or many parts.

    every  in microseconds
    size   bytes of parquet
    """

    every: Length
    size: int = BYTES

    @classmethod
    def of(cls, every: Duration, size: int) -> Roll:
        """Return the rule of the arguments `roll` and `roll_bytes`; raise ConfigError for invalid ones."""
        length = micros(every, "roll")
        if length <= 0:
            raise ConfigError(f"roll must be longer than 0, got {every!r}: without it each batch has its file")
        whole: object = size
        if not isinstance(whole, int) or isinstance(whole, bool) or whole < 1:
            raise ConfigError(f"roll_bytes must be a whole number of at least 1, got {size!r}")
        return cls(length, size)

    def is_due(self, seconds: float, size: int, parts: int) -> bool:
        """Return whether rows that have waited for so long, in so many bytes and parts, become a file now."""
        return seconds * 1_000_000 >= self.every or size >= self.size or parts >= PARTS
