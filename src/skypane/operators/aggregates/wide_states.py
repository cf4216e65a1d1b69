"""The states of a key that are not integers: texts, lists, user-defined states; one Arrow value per key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels.merging import sorted_order
from skypane.operators.aggregates.list_columns import as_lists, listed, one_of_equals, valid_values, whole
from skypane.preference.column_checks import field_of
from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import column_ranks, row_ranks
from skypane.types import IntArray

_MANY = 512
"""Rows from which a radix sort is faster than np.lexsort."""


@runtime_checkable
class Accumulator(Protocol):
    """A user-defined state, one Arrow value per group; implement it to run your own aggregate.

    Laws, as for a query: every division of a group's rows into states gives the same answer, in any order of combining.
    `groups` are the group numbers of rows or states, in [0, n), in any order; a group may be empty. Instances are
    frozen, and are pickled and sent to Spark's workers.

    >>> from skypane.examples.traffic import QueueEnd
    >>> isinstance(QueueEnd("cab", "speed", "ts", vehicles=2), sp.Accumulator)
    True
    """

    @property
    def columns(self) -> Sequence[str]:
        """The columns that the accumulator reads."""
        ...

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of a state for rows of `schema`; raise ConfigError, naming column and type, if unusable."""
        ...

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of the values that lower() returns."""
        ...

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        """Return the states of n groups of rows."""
        ...

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        """Return the states of n groups of states."""
        ...

    def lower(self, states: pa.Array) -> pa.Array:
        """Return the value that the user sees for each state."""
        ...


@dataclass(frozen=True)
class WideLeastPart:
    """LeastPart for values of any type that has an order: the value of the first (or last) row by `order`."""

    order: str
    value: str
    largest: bool = False
    skip_nulls: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.order, self.value)

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.struct([("order", field_of(schema, self.order).type), ("value", field_of(schema, self.value).type)])

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        return field_of(schema, self.value).type

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        order, value = (whole(rows.column(name)) for name in (self.order, self.value))
        missing = pc.is_null(order)
        if self.skip_nulls:
            missing = pc.or_(missing, pc.is_null(value))
        states = pa.StructArray.from_arrays([order, value], ["order", "value"], mask=missing)
        return self.combine(states, groups, n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        kept = np.flatnonzero(pc.is_valid(states).to_numpy(zero_copy_only=False))
        order, value = (pa.chunked_array([pc.struct_field(states.take(pa.array(kept)), [part])]) for part in (0, 1))
        ranks = column_ranks(order)
        content = content_keys(pa.table({"value": value}))
        places = np.lexsort((*content[::-1], -ranks if self.largest else ranks, groups[kept]))
        sorted_groups = groups[kept][places]
        first = np.ones(len(places), np.bool_)
        first[1:] = sorted_groups[1:] != sorted_groups[:-1]
        chosen = np.full(n, -1)
        chosen[sorted_groups[first]] = kept[places[first]]
        return states.take(pa.array(chosen, mask=chosen < 0))

    def lower(self, states: pa.Array) -> pa.Array:
        return pc.struct_field(states, [1])


@dataclass(frozen=True)
class InOrderPart:
    """All rows of a group by `order`, rows of equal order by content; the answer is the result of `function` on them.

    function  takes a pa.Table of `taken` and returns a Python value; None: a list of the values of `taken`, one column
    """

    recorded: ClassVar[str] = "inorder"

    order: str
    taken: tuple[str, ...]
    function: Callable[[pa.Table], Any] | None = None
    returns: pa.DataType | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.order, *self.taken)))

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(self._item(schema))

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(field_of(schema, self.taken[0]).type) if self.returns is None else self.returns

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        rows = rows.select(self.columns).combine_chunks()
        if self.function is None:
            kept = np.flatnonzero(rows.column(self.taken[0]).is_valid().to_numpy())
            rows, groups = rows.take(pa.array(kept)), groups[kept]
        return self._sorted(rows, groups, n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        items, owners = listed(states, groups)
        return self._sorted(_table(items), owners, n)

    def _sorted(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        ordered = _ordered(rows, column_ranks(rows.column(self.order)), groups)
        rows = rows.take(pa.array(ordered))
        fields = list(self._item(rows.schema))
        items = pa.StructArray.from_arrays([whole(column) for column in rows.columns], fields=fields)
        return as_lists(items, groups[ordered], n)

    def lower(self, states: pa.Array) -> pa.Array:
        items, owners = listed(states, np.arange(len(states)))
        rows = _table(items).select(list(self.taken))
        if self.function is None:
            return as_lists(whole(rows.column(0)), owners, len(states))
        edges = np.searchsorted(owners, np.arange(len(states) + 1)).tolist()
        answers = [self.function(rows.slice(begin, end - begin)) for begin, end in pairwise(edges)]
        return pa.array(answers, self.returns)

    def _item(self, schema: pa.Schema) -> pa.DataType:
        return pa.struct([pa.field(name, field_of(schema, name).type) for name in self.columns])


def _ordered(rows: pa.Table, ranks: IntArray, groups: IntArray) -> IntArray:
    """Return the order by group, rank and content; contents are compared where ranks are equal only, as they cost most."""
    ordered = sorted_order(groups, ranks) if len(ranks) >= _MANY else np.lexsort((ranks, groups))
    equal = (np.diff(ranks[ordered]) == 0) & (np.diff(groups[ordered]) == 0)
    if equal.any():
        ties = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
        tied = ordered[ties]
        contents, run = content_keys(rows.take(pa.array(tied))), np.cumsum(np.concatenate([[True], ~equal]))[ties]
        ordered[ties] = tied[np.lexsort((*contents[::-1], run))]
    return ordered


@dataclass(frozen=True)
class DistinctPart:
    """The distinct values of a column, ascending, nulls left out; all NaNs are one value, and -0.0 equals 0.0."""

    recorded: ClassVar[str] = "distinct"

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(field_of(schema, self.column).type)

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        del schema
        return pa.int64()

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        return self._different(*valid_values(rows, self.column, groups), n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        return self._different(*listed(states, groups), n)

    def lower(self, states: pa.Array) -> pa.Array:
        return pc.list_value_length(states).cast(pa.int64())

    @staticmethod
    def _different(values: pa.Array, groups: IntArray, n: int) -> pa.Array:
        values = one_of_equals(values)
        pairs = row_ranks([groups, *content_keys(pa.table({"value": values}))])
        firsts = np.unique(pairs, return_index=True)[1]
        return as_lists(values.take(pa.array(firsts)), groups[firsts], n)


def _table(items: pa.StructArray) -> pa.Table:
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(items)])
