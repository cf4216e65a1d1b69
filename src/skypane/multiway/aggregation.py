"""What a multiway aggregate computes: a function of each key's tuples in windows that slide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skypane.kernels import texts, whive
from skypane.types import BytesArray, ConfigError, IntArray, Micros

FUNCTIONS: Final = {"count": whive.COUNT, "sum": whive.SUM, "max": whive.MAX, "first": whive.FIRST, "avg": whive.AVG}
"""What is kept for each key; `first` needs each key's tuples in one thread, and in order."""
WHERE: Final = {"": texts.ANY, "mail": texts.MAIL, "mail or ip": texts.MAIL_OR_IP}
"""Which tuples count: all, or those whose text holds a mail address, or that or an IP address."""


class Winset(NamedTuple):
    """The windows of one span of time, by key; averages are floats."""

    start: Micros
    keys: IntArray
    states: npt.NDArray[np.int64 | np.float64]

    def sorted(self) -> Winset:
        """Return it with its keys ascending."""
        order = np.argsort(self.keys)
        return Winset(self.start, self.keys[order], self.states[order])


@dataclass(frozen=True)
class Aggregation:
    """A function over windows of `size`, one every `advance`, in the unit of the tuples' times.

    function  one of FUNCTIONS
    keys      for so many a winset has room
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
                f"need keys >= 1 and 0 < advance <= size, got advance={self.advance}, size={self.size}, keys={self.keys}"
            )
        if self.function not in FUNCTIONS:
            raise ConfigError(f"there is no function {self.function!r}; there are {', '.join(FUNCTIONS)}")
        if self.where not in WHERE:
            raise ConfigError(f"there is no condition {self.where!r}; there are {', '.join(map(repr, WHERE))}")
        if self.where and self.comments is None:
            raise ConfigError(f"where={self.where!r} looks into texts: give comments=")

    @property
    def code(self) -> int:
        """The function's number in the kernels."""
        return FUNCTIONS[self.function]

    @property
    def in_order(self) -> bool:
        """Whether the function needs its tuples in the order of time."""
        return self.function == "first"

    @property
    def room(self) -> int:
        """Places of a table of keys: a power of two, half of it free."""
        return 1 << (2 * self.keys - 1).bit_length()

    @property
    def condition(self) -> tuple[int, tuple[IntArray, BytesArray]]:
        """The condition's number in the kernels, and the texts that it looks into."""
        if self.comments is None:
            return WHERE[self.where], whive.NO_TEXTS
        _, offsets, data = self.comments.buffers()
        begin = self.comments.offset
        places = np.frombuffer(offsets, np.int32)[begin : begin + len(self.comments) + 1].astype(np.int64)
        return WHERE[self.where], (places, np.frombuffer(data, np.uint8) if data is not None else whive.NO_TEXTS[1])

    def winset(self, start: Micros, keys: IntArray, states: IntArray, counts: IntArray) -> Winset:
        """Return a winset from what was kept."""
        return Winset(start, keys, states / counts if self.function == "avg" else states)
