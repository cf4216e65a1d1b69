"""The base of queries for the best rows under a preference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels.families import FRONTS, SKYLINES
from skypane.operators.key_parts import have_parts, rows_of_part
from skypane.operators.query import Query
from skypane.preference import Columns, Preference
from skypane.preference.column_checks import check_group, column_names
from skypane.types import ConfigError

GROWTH: Final = (0.0, 0.11, 0.27, 0.40, 0.50, 0.59, 0.69, 0.76, 0.81, 0.86, 0.90, 0.93)
"""The skyline of n independent points in 1, 2, .. dimensions has about n^growth points, for n from 50 to 20,000 (the
simulator's fitted_size). Anticorrelated points have a larger skyline, correlated points a smaller one."""


@dataclass(frozen=True, init=False)
class ByPreference(Query):
    """A query under a preference: a partial holds rows, and combine lifts the rows of all partials again."""

    #: which values of which columns are better
    preference: Preference
    #: one answer per distinct value of these columns and of the preference's diff() columns; null counts as a value
    by: tuple[str, ...]

    kernel_families: ClassVar[Sequence[str]] = (SKYLINES, FRONTS)

    def __init__(self, preference: Preference | str, by: Columns = ()) -> None:
        object.__setattr__(self, "preference", Preference.of(preference))
        object.__setattr__(self, "by", column_names(by, "by"))
        if not self.preference.levels:
            raise ConfigError(f"need at least one of low, high or around, got {self.preference!r}")

    @property
    def required(self) -> tuple[str, ...]:
        """The ranked columns; columns that only form groups may be null."""
        return self.preference.ranked

    @property
    def growth(self) -> float:
        """The growth for independent points in as many dimensions as the first level has criteria."""
        return GROWTH[min(len(self.preference.levels[0]), len(GROWTH)) - 1]

    @property
    def groups(self) -> tuple[str, ...]:
        """All grouping columns."""
        return self.preference.group_columns(self.by)

    def validate(self, schema: pa.Schema) -> None:
        self.preference.validate(schema)
        for column in self.by:
            check_group(schema, column)

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return partials[0] if len(partials) == 1 else self.lift(pa.concat_tables(partials))

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def divisible(self, schema: pa.Schema) -> bool:
        """Return whether there are groups, and their columns can be hashed."""
        return have_parts(schema, self.groups)

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        return rows_of_part(partial, self.groups, part, parts)


def one_per(by: Sequence[str]) -> str:
    """Return the grouping columns as a phrase, empty if there are no columns."""
    return f", one per {', '.join(by)}" if by else ""


def is_count(value: object) -> bool:
    """Return whether `value` is an integer; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def take_rows(rows: pa.Table, indices: Any) -> pa.Table:
    """Return the rows at distinct, ascending `indices`; `rows` itself, not copied, if these are all rows."""
    return rows if len(indices) == rows.num_rows else pc.take(rows, pa.array(indices), boundscheck=False)
