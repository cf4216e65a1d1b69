"""The integer state of a key: counts, sums, least and largest values; kernels/keyed.py merges them.

Each part specifies its columns of the state and how they are merged, and fills them from rows.

| part | state | reason |
|---|---|---|
| CountPart | the number | an integer |
| IntegerSumPart | upper and lower 32 bits | an integer beyond 64 bits: only an answer can overflow, not its parts |
| NumberSumPart | exact.py's limbs | float64 addition is not associative: answers would depend on the order of arrival |
| LeastPart | whether there is one, and its keys | compared as integers, to which any 64-bit value is converted |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels import exact, keyed
from skypane.kernels.column_layout import frozen
from skypane.operators.aggregates.condition import Condition
from skypane.operators.aggregates.list_columns import whole
from skypane.operators.aggregates.ordered_int64 import keys_of
from skypane.types import BoolArray, FloatArray, IntArray


class EvaluatedRows:
    """Rows to aggregate; each column and condition is evaluated once."""

    def __init__(self, table: pa.Table, ids: IntArray) -> None:
        self._table = table
        self.ids = frozen(ids)
        self.column = cache(self._column)
        self.keep = cache(self._keep)
        self.numbers = cache(self._numbers)
        self.keys = cache(self._keys)
        self.places = cache(self._places)

    def _column(self, name: str) -> pa.Array:
        return whole(self._table.column(name))

    def _keep(self, where: str | None, *valid: str) -> BoolArray:
        """Return the mask of the rows for which `where` is true and no column of `valid` is null."""
        keep = np.ones(len(self.ids), np.bool_) if where is None else Condition(where).holds(self._table)
        for name in valid:
            if self.column(name).null_count:
                keep = keep & pc.is_valid(self.column(name)).to_numpy(zero_copy_only=False)
        return frozen(keep)

    def _numbers(self, name: str) -> FloatArray:
        values = self.column(name).cast(pa.float64(), safe=False)  # integers beyond 2**53 are rounded, as in Spark
        if values.null_count:
            values = pc.fill_null(values, 0.0)
        return frozen(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)))

    def _keys(self, name: str) -> IntArray:
        return frozen(keys_of(self.column(name)))

    def _places(self, name: str) -> IntArray:
        """Return the keys by which rows are ordered; in an order, -0.0 equals 0.0."""
        column = self.column(name)
        if not pa.types.is_floating(column.type):
            return self.keys(name)
        return frozen(keys_of(pc.add(column, pa.scalar(0.0, column.type))))


class StatePart(Protocol):
    """A part of a state; frozen, and equal to another part exactly when both keep the same."""

    @property
    def way(self) -> int: ...
    @property
    def width(self) -> int: ...

    def fill(self, states: Any, at: int, rows: EvaluatedRows) -> None:
        """Aggregate `rows` into columns [at, at + width) of their groups' states, which are empty."""
        ...


@dataclass(frozen=True)
class CountPart:
    """The number of rows, or of rows with a value in `column`."""

    column: str | None = None
    where: str | None = None

    way = keyed.ADD
    width = 1

    def fill(self, states: Any, at: int, rows: EvaluatedRows) -> None:
        keep = rows.keep(self.where, *([self.column] if self.column else []))
        keyed.add_counts(states, at, rows.ids, keep)


@dataclass(frozen=True)
class IntegerSumPart:
    """The sum of integers."""

    column: str
    where: str | None = None

    way = keyed.ADD
    width = 2

    def fill(self, states: Any, at: int, rows: EvaluatedRows) -> None:
        keyed.add_integers(states, at, rows.ids, rows.keys(self.column), rows.keep(self.where, self.column))


@dataclass(frozen=True)
class NumberSumPart:
    """The sum of numbers as float64, or of their squares."""

    column: str
    where: str | None = None
    squares: bool = False

    way = keyed.EXACT
    width = exact.WIDTH

    def fill(self, states: Any, at: int, rows: EvaluatedRows) -> None:
        numbers, keep = rows.numbers(self.column), rows.keep(self.where, self.column)
        if self.squares:
            exact.add_squares(states, at, rows.ids, numbers, keep)
        else:
            exact.add_numbers(states, at, rows.ids, numbers.view(np.int64), keep)


@dataclass(frozen=True)
class LeastPart:
    """The first row by `order`, and of several such rows the one with the least `value`; values may be null.

    largest  the last row instead
    """

    order: str
    value: str | None = None
    where: str | None = None
    largest: bool = False
    #: whether rows with a null value are left out
    skip_nulls: bool = False

    way = keyed.LEAST

    @property
    def width(self) -> int:
        return 2 if self.value is None else 4

    def fill(self, states: Any, at: int, rows: EvaluatedRows) -> None:
        order = rows.keys(self.order) if self.value is None else rows.places(self.order)
        columns: list[IntArray] = [~order if self.largest else order]
        valid = [self.order]
        if self.value is not None:
            nulls = pc.is_null(rows.column(self.value)).to_numpy(zero_copy_only=False)
            columns += [nulls.astype(np.int64), rows.keys(self.value)]
            valid += [self.value] if self.skip_nulls else []
        keyed.keep_least(states, at, rows.ids, frozen(np.column_stack(columns)), rows.keep(self.where, *valid))


def plan_of(parts: Sequence[StatePart]) -> IntArray:
    """Return the parts as kernels read them, a row for each: way of merging, first column, number of columns."""
    at, lines = 0, []
    for part in parts:
        lines.append((part.way, at, part.width))
        at += part.width
    return frozen(np.array(lines, np.int64).reshape(-1, 3))
