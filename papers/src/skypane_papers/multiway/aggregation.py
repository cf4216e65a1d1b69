"""A multiway aggregation: a function of each key's tuples in sliding windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skypane.types import BytesArray, ConfigError, IntArray, Micros
from skypane_papers.multiway.kernels import texts, whive

FUNCTIONS: Final = {"count": whive.COUNT, "sum": whive.SUM, "max": whive.MAX, "first": whive.FIRST, "avg": whive.AVG}
"""Functions and their codes in the kernels; `first` needs each key's tuples in one thread and in order."""
WHERE: Final = {"": texts.ANY, "mail": texts.MAIL, "mail or ip": texts.MAIL_OR_IP}
"""Conditions: all tuples, those whose text contains a mail address, or those with a mail or IP address."""


class Winset(NamedTuple):
    """The windows of all keys with the same start; averages are floats."""

    start: Micros
    keys: IntArray
    states: npt.NDArray[np.int64 | np.float64]

    def sorted(self) -> Winset:
        """Return the winset with ascending keys."""
        order = np.argsort(self.keys)
        return Winset(self.start, self.keys[order], self.states[order])


@dataclass(frozen=True)
class Aggregation:
    """A function over windows of `size`, one every `advance`, in the unit of the tuples' times.

    function  one of FUNCTIONS
    keys      capacity of a winset in keys
    where     one of WHERE; a tuple's value is then the number of its text in `comments`
    """

    size: int
    advance: int
    function: str = "count"
    keys: int = 1_024
    where: str = ""
    comments: pa.StringArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.advance <= self.size or self.keys < 1:
            raise ConfigError(
                f"keys must be >= 1 and 0 < advance <= size, got advance={self.advance}, size={self.size}, "
                f"keys={self.keys}"
            )
        if self.function not in FUNCTIONS:
            raise ConfigError(f"function must be one of {', '.join(FUNCTIONS)}, got {self.function!r}")
        if self.where not in WHERE:
            raise ConfigError(f"where must be one of {', '.join(map(repr, WHERE))}, got {self.where!r}")
        if self.where and self.comments is None:
            raise ConfigError(f"comments is missing; where={self.where!r} needs texts")

    @property
    def code(self) -> int:
        """The function's code in the kernels."""
        return FUNCTIONS[self.function]

    @property
    def in_order(self) -> bool:
        """Whether the function needs its tuples in time order."""
        return self.function == "first"

    @property
    def room(self) -> int:
        """Size of a table of keys: a power of two, of which at most half is used."""
        return 1 << (2 * self.keys - 1).bit_length()

    @property
    def condition(self) -> tuple[int, tuple[IntArray, BytesArray]]:
        """The condition's code in the kernels, and the texts that it reads."""
        if self.comments is None:
            return WHERE[self.where], whive.NO_TEXTS
        _, offsets, data = self.comments.buffers()
        begin = self.comments.offset
        bounds = np.frombuffer(offsets, np.int32)[begin : begin + len(self.comments) + 1].astype(np.int64)
        return WHERE[self.where], (bounds, np.frombuffer(data, np.uint8) if data is not None else whive.NO_TEXTS[1])

    def winset(self, start: Micros, keys: IntArray, states: IntArray, counts: IntArray) -> Winset:
        """Return a winset from its states and counts."""
        return Winset(start, keys, states / counts if self.function == "avg" else states)
