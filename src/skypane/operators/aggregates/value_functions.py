"""Aggregate functions of the different values of a column: their set, the most frequent one, percentiles.

Functions of the same values share one state: mode, median and percentiles (value_counts.py), collect_set and
count_distinct (DistinctPart).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from skypane.operators.aggregates.functions import Function, KeyStates, Lowering
from skypane.operators.aggregates.ordered_int64 import fits
from skypane.operators.aggregates.value_counts import (
    Places,
    ValueCounts,
    interpolated,
    most_frequent,
    rows_of,
    taken,
)
from skypane.operators.aggregates.wide_states import Accumulator, DistinctPart
from skypane.preference.column_checks import field_of, is_orderable
from skypane.types import ConfigError


@dataclass(frozen=True)
class DistinctValues(Function):
    """The different values as an ascending list; without any value the list is empty."""

    recorded = "distinctvalues"

    column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def kind(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(field_of(schema, self.column).type)

    def accumulators(self, schema: pa.Schema) -> tuple[Accumulator, ...]:
        del schema
        return (DistinctPart(self.column),)

    def lowering(self, schema: pa.Schema) -> Lowering:
        (kept,), kind = self.accumulators(schema), self.kind(schema)
        return lambda states: states.wide(kept, self.where).cast(kind)


@dataclass(frozen=True)
class _OfCounts(Function):
    """A function of the counts of values."""

    column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def accumulators(self, schema: pa.Schema) -> tuple[Accumulator, ...]:
        del schema
        return (ValueCounts(self.column),)

    def _counts(self, states: KeyStates) -> pa.Array:
        return states.wide(ValueCounts(self.column), self.where)


@dataclass(frozen=True)
class ModeFunction(_OfCounts):
    """The value of most rows; of several such values the least, as Spark's mode(column, true)."""

    recorded = "mode"

    def kind(self, schema: pa.Schema) -> pa.DataType:
        kind = field_of(schema, self.column).type
        if not is_orderable(kind) or pa.types.is_dictionary(kind):
            raise ConfigError(f"column {self.column!r} of type {kind} has no order")
        return kind

    def lowering(self, schema: pa.Schema) -> Lowering:
        del schema
        return lambda states: most_frequent(self._counts(states))


@dataclass(frozen=True)
class PercentileFunction(_OfCounts):
    """Percentiles: interpolated as float64, or a value of the column.

    percentages  each in [0, 1]
    single       whether the answer is one value, not a list
    taken        whether the answer is a value of the column: the least that at least so large a share of rows do not exceed
    """

    recorded = "percentile"

    percentages: tuple[float, ...] = (0.5,)
    single: bool = True
    taken: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.percentages or not all(0.0 <= share <= 1.0 for share in self.percentages):
            raise ConfigError(f"percentages must lie between 0 and 1, got {self.percentages!r}")

    def kind(self, schema: pa.Schema) -> pa.DataType:
        kind = field_of(schema, self.column).type
        if not (_has_places(kind) if self.taken else _is_number(kind)):
            raise ConfigError(
                f"a percentile of column {self.column!r} of type {kind}: it holds no numbers; cast it to double"
            )
        value = kind if self.taken else pa.float64()
        return value if self.single else pa.list_(value)

    def lowering(self, schema: pa.Schema) -> Lowering:
        kind, one = self.kind(schema), taken if self.taken else interpolated

        def lower(states: KeyStates) -> pa.Array:
            places = Places(self._counts(states))
            answers = [one(places, share) for share in self.percentages]
            return answers[0] if self.single else rows_of(answers, pa.array(places.totals == 0)).cast(kind)

        return lower


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_floating(kind))


def _has_places(kind: pa.DataType) -> bool:
    """Return whether Spark's percentile_approx takes the type: numbers, dates, times."""
    return pa.types.is_decimal(kind) or (fits(kind) and not pa.types.is_boolean(kind))
