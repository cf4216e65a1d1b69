"""The different values of a column with the number of rows of each: the state of mode, median and percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skypane.operators.aggregates.list_columns import as_lists, listed, one_of_equals, valid_values
from skypane.preference.column_checks import field_of
from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import row_ranks
from skypane.types import FloatArray, IntArray


@dataclass(frozen=True)
class ValueCounts:
    """The number of rows of each value, ascending by value, nulls left out; all NaNs are one value, and -0.0 equals 0.0."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(_item(field_of(schema, self.column).type))

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        return self.state_type(schema)

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        values, owners = valid_values(rows, self.column, groups)
        return self._summed(one_of_equals(values), np.ones(len(values), np.int64), owners, n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        items, owners = listed(states, groups)
        values, counts = items.flatten()
        return self._summed(values, counts.to_numpy(zero_copy_only=False), owners, n)

    def lower(self, states: pa.Array) -> pa.Array:
        return states

    @staticmethod
    def _summed(values: pa.Array, counts: IntArray, groups: IntArray, n: int) -> pa.Array:
        pairs = row_ranks([groups, *content_keys(pa.table({"value": values}))])
        firsts = np.unique(pairs, return_index=True)[1]
        sums = np.zeros(len(firsts), np.int64)
        np.add.at(sums, pairs, counts)
        columns = [values.take(pa.array(firsts)), pa.array(sums)]
        items = pa.StructArray.from_arrays(columns, fields=list(_item(values.type)))
        return as_lists(items, groups[firsts], n)


def most_frequent(states: pa.Array) -> pa.Array:
    """Return the value with most rows of each state, of several the least; null for a state without values."""
    items, owners = listed(states, np.arange(len(states)))
    values, counts = items.flatten()
    # The sort is stable: of values with equal counts the least comes first.
    order = np.lexsort((-counts.to_numpy(zero_copy_only=False), owners))
    held, firsts = np.unique(owners[order], return_index=True)
    chosen = np.full(len(states), -1)
    chosen[held] = order[firsts]
    return values.take(pa.array(chosen, mask=chosen < 0))


class Places:
    """The values of states by their place in ascending order, where each value stands once for each of its rows."""

    def __init__(self, states: pa.Array) -> None:
        items, owners = listed(states, np.arange(len(states)))
        self.values, counts = items.flatten()
        numbers = counts.to_numpy(zero_copy_only=False)
        #: number of rows of each state
        self.totals: IntArray = np.zeros(len(states), np.int64)
        np.add.at(self.totals, owners, numbers)
        self._before = np.cumsum(self.totals) - self.totals
        self._through = np.cumsum(numbers)

    def item(self, places: FloatArray) -> IntArray:
        """Return the position among `values` of the value at a place of each state; any position if it has no values."""
        found = np.searchsorted(self._through, self._before + places.astype(np.int64), side="right")
        return np.minimum(found, max(0, len(self.values) - 1))


def interpolated(places: Places, share: float) -> pa.Array:
    """Return the percentile `share` of each state, as Spark's percentile: interpolated between neighbours, null of none."""
    position = share * np.maximum(places.totals - 1, 0)
    low, high = np.floor(position), np.ceil(position)
    below, above = places.item(low), places.item(high)
    numbers: FloatArray = places.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not len(numbers):
        return pa.nulls(len(places.totals), pa.float64())
    least, most = numbers[below], numbers[above]
    with np.errstate(invalid="ignore", over="ignore"):  # NaN beside an infinity, as in Spark
        between = least + (most - least) * (position - low)
    return pa.array(np.where(below == above, least, between), mask=places.totals == 0)


def taken(places: Places, share: float) -> pa.Array:
    """Return the least value of each state that at least `share` of its rows do not exceed; null of none."""
    at = np.maximum(np.ceil(share * places.totals), 1.0) - 1.0
    return places.values.take(pa.array(places.item(at), mask=places.totals == 0))


def rows_of(columns: Sequence[pa.Array], missing: pa.Array) -> pa.Array:
    """Return a list for each row of equally long columns, null where `missing` is true."""
    n, width = len(missing), len(columns)
    flat = pa.concat_arrays(list(columns)).take(pa.array(np.arange(n * width).reshape(width, n).T.reshape(-1)))
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32) * width), flat, mask=missing)


def _item(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("value", kind), ("count", pa.int64())])
