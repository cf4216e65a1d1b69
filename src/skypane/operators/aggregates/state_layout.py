"""The layout of a query's states in a partial: keys, one matrix of integers, and other states beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import pyarrow as pa

from skypane.kernels.column_layout import frozen
from skypane.operators.aggregates.functions import Function, Lowering
from skypane.operators.aggregates.list_columns import whole
from skypane.operators.aggregates.state_parts import CountPart, StatePart, plan_of
from skypane.operators.aggregates.wide_states import Accumulator
from skypane.preference.column_checks import field_of
from skypane.types import IntArray

STATE = "state"
_ROWS = b"skypane.rows"
"""Metadata key at which a partial's schema stores the schema of the rows that it was lifted from."""


class Functions(Protocol):
    """A query with keys and functions, which has a layout."""

    @property
    def by(self) -> tuple[str, ...]: ...
    @property
    def functions(self) -> tuple[tuple[str, Function], ...]: ...


@dataclass(frozen=True)
class StateLayout:
    """The state of a query's functions over rows of one schema; equal parts are kept once.

    rows     the schema of the rows, with only the columns that the query reads
    places   the first column of each part in the matrix; the first part counts rows
    wide     the accumulators beside the matrix, each with the condition on its rows
    """

    rows: pa.Schema
    by: tuple[str, ...]
    functions: tuple[tuple[str, Function], ...]

    @classmethod
    def of(cls, query: Any, schema: pa.Schema) -> StateLayout:
        """Return the layout for rows of `schema`."""
        read = query.reads(schema)
        return _layout(
            query.by, query.functions, pa.schema([field_of(schema, name).remove_metadata() for name in read])
        )

    def validate(self) -> None:
        """Raise ConfigError, naming column and type, if a function cannot be computed on the rows."""
        for _, function in self.functions:
            function.validate(self.rows)

    @cached_property
    def parts(self) -> tuple[StatePart, ...]:
        needed = (part for _, function in self.functions for part in function.parts(self.rows))
        return tuple(dict.fromkeys((CountPart(), *needed)))

    @cached_property
    def wide(self) -> tuple[tuple[Accumulator, str | None], ...]:
        needed = ((kept, f.where) for _, f in self.functions for kept in f.accumulators(self.rows))
        return tuple(dict.fromkeys(needed))

    @cached_property
    def plan(self) -> IntArray:
        """The description of the parts for the kernels."""
        return plan_of(self.parts)

    @cached_property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @cached_property
    def places(self) -> Mapping[StatePart, int]:
        return {part: int(at) for part, at in zip(self.parts, self.plan[:, 1], strict=True)}

    @cached_property
    def answers(self) -> pa.Schema:
        """The schema of answers."""
        keys = [self.rows.field(name) for name in self.by]
        return pa.schema([*keys, *((name, function.kind(self.rows)) for name, function in self.functions)])

    @cached_property
    def lowerings(self) -> tuple[Lowering, ...]:
        """For each aggregate function, the function that computes its values from states."""
        return tuple(function.lowering(self.rows) for _, function in self.functions)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of partials."""
        fields = [self.rows.field(name) for name in self.by]
        fields.append(pa.field(STATE, pa.list_(pa.int64(), self.width)))
        fields += [
            pa.field(f"{STATE}_{number}", accumulator.state_type(self.rows))
            for number, (accumulator, _) in enumerate(self.wide)
        ]
        return pa.schema(fields, {_ROWS: self.rows.serialize().to_pybytes()})

    def partial(self, keys: pa.Table, states: IntArray, wide: Iterable[pa.Array] = ()) -> pa.Table:
        """Return the partial with these keys and states."""
        matrix = pa.FixedSizeListArray.from_arrays(pa.array(states.reshape(-1)), self.width)
        return pa.Table.from_arrays([*keys.columns, matrix, *wide], schema=self.schema)

    def states(self, partial: pa.Table) -> IntArray:
        """Return the matrix of a partial, one row per key."""
        states = whole(partial.column(len(self.by)))
        return frozen(states.flatten().to_numpy(zero_copy_only=False).reshape(-1, self.width))

    def lowered(self, keys: pa.Table, states: IntArray, wide: Callable[[int], pa.Array] | None = None) -> pa.Table:
        """Return the answer of states, (n, width) in any memory order; `wide` returns the states of an accumulator."""
        lowered = LoweredStates(self, states, wide)
        values = [lower(lowered) for lower in self.lowerings]
        return pa.Table.from_arrays([*keys.columns, *values], schema=self.answers)

    def wide_states(self, partial: pa.Table, number: int) -> pa.Array:
        """Return the states of the accumulator with this number, one per key."""
        return whole(partial.column(len(self.by) + 1 + number))


class LoweredStates:
    """The states of keys, as functions read them."""

    def __init__(self, layout: StateLayout, matrix: IntArray, wide: Callable[[int], pa.Array] | None) -> None:
        self._layout = layout
        self._matrix = matrix
        self._wide = wide

    def __getitem__(self, part: StatePart) -> tuple[IntArray, int]:
        """Return the matrix of states and the first column of the part."""
        return self._matrix, self._layout.places[part]

    def wide(self, accumulator: Accumulator, where: str | None) -> pa.Array:
        """Return the states of an accumulator."""
        if self._wide is None:
            raise TypeError("these states are integers only")
        return self._wide(self._layout.wide.index((accumulator, where)))


def layout_of(query: Functions, partial: pa.Schema) -> StateLayout:
    """Return the layout of partials of this schema."""
    return _layout(query.by, query.functions, _rows(partial.metadata[_ROWS]))


@lru_cache(maxsize=64)
def _rows(serialized: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(serialized))


@lru_cache(maxsize=64)
def _layout(by: tuple[str, ...], functions: tuple[tuple[str, Function], ...], rows: pa.Schema) -> StateLayout:
    return StateLayout(rows, by, functions)


__all__ = ["STATE", "LoweredStates", "StateLayout", "layout_of"]
