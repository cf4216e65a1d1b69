"""Aggregate functions: count, sum, avg, min, max, variance, stddev, first, last, max_by and others.

Each is a frozen value that specifies the columns that it reads, the condition on rows (`where`), the parts of its
state, and how values are computed from them. Functions that need the same part share it: sum, avg and stddev keep one
sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa

from skypane.kernels import exact, keyed
from skypane.operators.aggregates.condition import Condition
from skypane.operators.aggregates.ordered_int64 import fits, nullable, values_of
from skypane.operators.aggregates.state_parts import CountPart, IntegerSumPart, LeastPart, NumberSumPart, StatePart
from skypane.operators.aggregates.wide_states import Accumulator, InOrderPart, WideLeastPart
from skypane.preference.column import quoted_column
from skypane.preference.column_checks import field_of, is_orderable
from skypane.preference.written import Written
from skypane.types import BadInputError, BoolArray, ConfigError, FloatArray, IntArray

_HALF = 1 << 31


class KeyStates(Protocol):
    """The states of keys, by part."""

    def __getitem__(self, part: StatePart) -> tuple[Any, int]:
        """Return the matrix of states and the first column of the part."""
        ...

    def wide(self, accumulator: Accumulator, where: str | None) -> pa.Array: ...


Lowering: TypeAlias = Callable[[KeyStates], pa.Array]


@dataclass(frozen=True)
class Function:
    """An aggregate function of the rows of a key for which `where` is true.

    >>> isinstance(sp.sum("price"), sp.Function)
    True
    >>> sp.sum("price", where="rating > 4")
    SumFunction(where='rating > 4', column='price')
    """

    #: name in checkpoints, if the class has been renamed since they were written
    recorded: ClassVar[str] = ""

    where: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None:
            Condition(self.where)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the function reads, without those of `where`."""
        raise NotImplementedError

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns that `where` reads."""
        return () if self.where is None else Condition(self.where).columns

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if the function cannot be computed on rows of `schema`."""
        if self.where is not None:
            Condition(self.where).validate(schema)
        self.kind(schema)

    def for_types(self, schema: pa.Schema) -> Self:
        """Return the function with a column that Spark computes for a condition that rows of `schema` do not fit."""
        if self.where is None or isinstance(self.where, Written) or Condition(self.where).fits(schema):
            return self
        return replace(self, where=quoted_column(self.where, "where"))

    def in_time(self, time: str | None) -> Function:
        """Return the function with `time` as its order column, if it needs an order and names none."""
        del time
        return self

    def kind(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of its values; raise ConfigError, naming column and type, if `schema` does not allow it."""
        raise NotImplementedError

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        """Return the integer parts of its state."""
        del schema
        return ()

    def accumulators(self, schema: pa.Schema) -> tuple[Accumulator, ...]:
        """Return the other parts of its state."""
        del schema
        return ()

    def lowering(self, schema: pa.Schema) -> Lowering:
        """Return the function that computes its values from the states of keys; made once, called for every window."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two functions exactly when they give the same values."""
        settings = {name: _json_value(value) for name, value in vars(self).items() if value is not None}
        return {"function": recorded_name(self), **settings}


@dataclass(frozen=True)
class CountFunction(Function):
    """The number of rows, or of rows with a value in `column`."""

    recorded = "counted"

    column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def kind(self, schema: pa.Schema) -> pa.DataType:
        for column in self.columns:
            field_of(schema, column)
        return pa.int64()

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        del schema
        return (CountPart(self.column, self.where),)

    def lowering(self, schema: pa.Schema) -> Lowering:
        (count,) = self.parts(schema)
        return lambda states: pa.array(_column(*states[count]).copy())  # a view would keep all states alive


@dataclass(frozen=True)
class _Numeric(Function):
    column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def _is_whole(self, schema: pa.Schema) -> bool:
        """Return whether the column holds integers; raise ConfigError if it holds no numbers."""
        kind = field_of(schema, self.column).type
        if pa.types.is_decimal(kind):
            raise ConfigError(
                f"{_word(self)} of column {self.column!r}: decimals are not summed exactly; cast it to double"
            )
        if not (pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)):
            raise ConfigError(
                f"{_word(self)} of column {self.column!r} of type {kind}: it holds no numbers; cast it to a number"
            )
        return bool(pa.types.is_signed_integer(kind))

    def _count(self) -> CountPart:
        return CountPart(self.column, self.where)


@dataclass(frozen=True)
class SumFunction(_Numeric):
    """The sum: int64 for integers, with BadInputError on overflow; float64 for other numbers."""

    recorded = "sum"

    def kind(self, schema: pa.Schema) -> pa.DataType:
        return pa.int64() if self._is_whole(schema) else pa.float64()

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        total = IntegerSumPart if self._is_whole(schema) else NumberSumPart
        return (self._count(), total(self.column, self.where))

    def lowering(self, schema: pa.Schema) -> Lowering:
        count, total = self.parts(schema)
        value = self._numbers if isinstance(total, NumberSumPart) else self._integers

        def lower(states: KeyStates) -> pa.Array:
            return value(*states[total], none=_column(*states[count]) == 0)

        return lower

    def _integers(self, matrix: Any, at: int, none: BoolArray) -> pa.Array:
        upper, lower = _carried(matrix, at)
        if ((upper >= _HALF) | (upper < -_HALF)).any():
            raise BadInputError(f"a sum of column {self.column!r} does not fit into 64 bits: cast it to double first")
        return nullable((upper << 32) + lower, none)

    @staticmethod
    def _numbers(matrix: Any, at: int, none: BoolArray) -> pa.Array:
        return nullable(exact.exact_values(matrix, at), none)


@dataclass(frozen=True)
class MeanFunction(_Numeric):
    """The arithmetic mean, as float64."""

    recorded = "mean"

    def kind(self, schema: pa.Schema) -> pa.DataType:
        self._is_whole(schema)
        return pa.float64()

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        return SumFunction(self.where, self.column).parts(schema)

    def lowering(self, schema: pa.Schema) -> Lowering:
        count, total = self.parts(schema)
        sums = exact.exact_values if isinstance(total, NumberSumPart) else _rounded

        def lower(states: KeyStates) -> pa.Array:
            n = _column(*states[count])
            means = sums(*states[total])
            return pa.array(means, mask=n == 0) if keyed.divide(means, n) else pa.array(means)

        return lower


@dataclass(frozen=True)
class VarianceFunction(_Numeric):
    """The variance or standard deviation, of the population or of a sample, which needs two values."""

    recorded = "spread"

    root: bool = False
    sample: bool = True

    def kind(self, schema: pa.Schema) -> pa.DataType:
        self._is_whole(schema)
        return pa.float64()

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        del schema
        return (
            self._count(),
            NumberSumPart(self.column, self.where),
            NumberSumPart(self.column, self.where, squares=True),
        )

    def lowering(self, schema: pa.Schema) -> Lowering:
        count, sums, squares = self.parts(schema)

        def lower(states: KeyStates) -> pa.Array:
            matrix, at = states[count]
            deviations = exact.squared_deviations(matrix, at, states[sums][1], states[squares][1])
            n = _column(matrix, at) - (1 if self.sample else 0)
            spread = deviations / np.maximum(n, 1)
            return nullable(np.sqrt(spread) if self.root else spread, n < 1)

        return lower


@dataclass(frozen=True)
class ValueByOrder(Function):
    """The value of the first or last row by `order`; the order "" stands for the time column of the query, if any.

    Rows without an order are left out. Among rows of equal order the least value is taken, null only if there is no other.
    """

    recorded = "chosen"

    column: str = ""
    order: str = ""
    largest: bool = False
    skip_nulls: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.column, *([self.order] if self.order else []))))

    def in_time(self, time: str | None) -> Function:
        return replace(self, order=_order(self, self.order, time))

    def kind(self, schema: pa.Schema) -> pa.DataType:
        kind = field_of(schema, self.column).type
        for name in {self.column, self.order}:
            if not is_orderable(field_of(schema, name).type) or pa.types.is_dictionary(field_of(schema, name).type):
                raise ConfigError(f"column {name!r} of type {field_of(schema, name).type} has no order")
        return kind

    def parts(self, schema: pa.Schema) -> tuple[StatePart, ...]:
        if not self._fits(schema):
            return ()
        value = None if self.order == self.column else self.column
        return (LeastPart(self.order, value, self.where, self.largest, self.skip_nulls),)

    def accumulators(self, schema: pa.Schema) -> tuple[Accumulator, ...]:
        return () if self._fits(schema) else (WideLeastPart(self.order, self.column, self.largest, self.skip_nulls),)

    def lowering(self, schema: pa.Schema) -> Lowering:
        for accumulator in self.accumulators(schema):
            return lambda states: accumulator.lower(states.wide(accumulator, self.where))
        (least,), kind = self.parts(schema), self.kind(schema)

        def lower(states: KeyStates) -> pa.Array:
            matrix, at = states[least]
            missing = _column(matrix, at) == 1
            if self.order == self.column:
                return values_of(_column(matrix, at + 1), kind, missing, largest=self.largest)
            missing = missing | (_column(matrix, at + 2) == 1)
            return values_of(_column(matrix, at + 3), kind, missing)

        return lower

    def _fits(self, schema: pa.Schema) -> bool:
        return all(fits(field_of(schema, name).type) for name in (self.column, self.order))


@dataclass(frozen=True)
class LeastTruth(ValueByOrder):
    """The least or largest truth value: whether all of them are true, or any; recorded in checkpoints as min or max."""

    def kind(self, schema: pa.Schema) -> pa.DataType:
        kind = super().kind(schema)
        if not pa.types.is_boolean(kind):
            word = "bool_or" if self.largest else "bool_and"
            raise ConfigError(f"{word} of column {self.column!r} of type {kind}: it holds no truth values")
        return kind


@dataclass(frozen=True)
class AccumulatedValue(Function):
    """The value of an accumulator."""

    accumulator: Accumulator | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._needed.columns)

    def in_time(self, time: str | None) -> Function:
        if not isinstance(self._needed, InOrderPart):
            return self
        return replace(self, accumulator=replace(self._needed, order=_order(self, self._needed.order, time)))

    def kind(self, schema: pa.Schema) -> pa.DataType:
        for column in self.columns:
            field_of(schema, column)
        self._needed.state_type(schema)
        return self._needed.output_type(schema)

    def accumulators(self, schema: pa.Schema) -> tuple[Accumulator, ...]:
        del schema
        return (self._needed,)

    def lowering(self, schema: pa.Schema) -> Lowering:
        accumulator, kind = self._needed, self.kind(schema)
        return lambda states: accumulator.lower(states.wide(accumulator, self.where)).cast(kind)

    def describe(self) -> dict[str, Any]:
        where = {} if self.where is None else {"where": self.where}
        return {"function": recorded_name(self._needed), "of": _described(self._needed), **where}

    @property
    def _needed(self) -> Accumulator:
        if self.accumulator is None:
            raise ConfigError("need an accumulator")
        return self.accumulator


def recorded_name(function: Function | Accumulator | type[Any]) -> str:
    """Return the name of a function, or of its class, in checkpoints."""
    kind = function if isinstance(function, type) else type(function)
    return getattr(function, "recorded", "") or kind.__name__.lower()


def _column(matrix: Any, at: int) -> IntArray:
    column: IntArray = np.ascontiguousarray(matrix[:, at])
    return column


def _carried(matrix: Any, at: int) -> tuple[IntArray, IntArray]:
    """Return the upper part of sums and the lower 32 bits."""
    upper, lower = _column(matrix, at), _column(matrix, at + 1)
    return upper + (lower >> 32), lower & 0xFFFFFFFF


def _described(accumulator: Accumulator) -> dict[str, Any]:
    """Return the fields of an accumulator as JSON values, with the names of functions."""
    fields = vars(accumulator) if hasattr(accumulator, "__dict__") else {"repr": repr(accumulator)}
    return {name: _json_value(value) for name, value in fields.items() if not name.startswith("_")}


def _json_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _rounded(matrix: Any, at: int) -> FloatArray:
    """Return sums of integers as float64."""
    upper, lower = _carried(matrix, at)
    return np.asarray(upper * 4_294_967_296.0 + lower, np.float64)


def _word(function: Function) -> str:
    return {"MeanFunction": "avg", "VarianceFunction": "the variance", "SumFunction": "sum"}.get(
        type(function).__name__, "this function"
    )


def _order(function: Function, order: str, time: str | None) -> str:
    if order or time:
        return order or time or ""
    raise ConfigError(f"{_word(function)} needs an order of rows: name its column as order=, or as time= of the query")
