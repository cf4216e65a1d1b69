"""Small numbers for large values, and sets of millions of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
T = TypeVar("T", bound=Hashable)


class Numbers(Generic[T]):
    """Values by number, in the order in which they came."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._values: list[T] = []
        self._numbers: dict[T, int] = {}
        for value in values:
            self.of(value)

    def of(self, value: T) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def __len__(self) -> int:
        return len(self._values)


class Packing:
    """Rows of a few small numbers as one number each, of 63 bits: the first has 18 and what the others leave."""

    def __init__(self, columns: int) -> None:
        self._bits = 45 // (columns - 1)
        self._limits = (1 << 63 - self._bits * (columns - 1), *[1 << self._bits] * (columns - 1))

    def pack(self, columns: Iterable[Integers]) -> Integers:
        packed = np.zeros(1, np.int64)
        for column, limit in zip(columns, self._limits, strict=True):
            if column.max(initial=0) >= limit:
                raise OverflowError(f"there are more than {limit} values to tell apart")
            packed = packed << self._bits | column
        return packed

    def columns(self, packed: Integers) -> list[Integers]:
        columns = []
        for limit in self._limits[:0:-1]:
            columns.append(packed & limit - 1)
            packed = packed >> self._bits
        return [packed, *reversed(columns)]


class Seen:
    """A set of numbers: sorted runs, each less than half as long as the one before, as in a log-structured merge tree."""

    def __init__(self) -> None:
        self._runs: list[Integers] = []

    def add(self, numbers: Integers) -> Integers:
        """Add numbers; return those that were not there, in order and once."""
        new = np.unique(numbers)
        for run in self._runs:
            new = new[run[np.searchsorted(run, new).clip(max=len(run) - 1)] != new]
        if len(new):
            self._runs.append(new)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")  # which merges runs
            self._runs.append(merged)
        return new

    def sorted(self) -> Integers:
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self._runs]))

    def __len__(self) -> int:
        return sum(map(len, self._runs))
