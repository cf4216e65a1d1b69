"""Filters of the rows of an answer before it is written: a condition, and the rows with the largest values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from skypane.operators.aggregates.condition import Condition
from skypane.preference.column import is_spark_column
from skypane.preference.column_checks import field_of, is_orderable
from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import column_ranks
from skypane.preference.written import SparkColumn
from skypane.types import ConfigError


class SparkCondition(str):
    """A condition that is a Spark Column, as a text: how the Column shows itself."""

    __slots__ = ("column",)

    column: SparkColumn | None

    @classmethod
    def of(cls, column: SparkColumn) -> Self:
        condition = cls(str(column).removeprefix("Column<'").removesuffix("'>"))
        condition.column = column
        return condition

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Return what is pickled: a Spark Column belongs to its session, and is left out."""
        return str, (str(self),)


@dataclass(frozen=True)
class AnswerFilter:
    """A condition on rows, and the number of rows to keep, the largest by a column; None: all rows."""

    having: str | None = None
    top: int | None = None
    rank_by: str | None = None

    def __post_init__(self) -> None:
        having: object = self.having
        if is_spark_column(having):
            object.__setattr__(self, "having", SparkCondition.of(having))
        elif not isinstance(having, str | None):
            raise ConfigError(f"having= must be a text such as 'total > 100', or a Spark Column, got {having!r}")
        if (self.top is None) != (self.rank_by is None):
            raise ConfigError(f"top and rank_by go together, got top={self.top!r}, rank_by={self.rank_by!r}")
        if self.top is not None and self.top < 1:
            raise ConfigError(f"top must be at least 1, got {self.top}")

    @property
    def by_spark(self) -> str | None:
        """The condition if only Spark can evaluate it, on a DataFrame of answers; else None."""
        if self.having is None or isinstance(self.having, SparkCondition):
            return self.having
        try:
            Condition(self.having, "having")
        except ConfigError:
            return self.having
        return None

    def fits(self, answers: pa.Schema) -> bool:
        """Return whether workers can evaluate the condition, if there is one, on rows of `answers`."""
        return self.by_spark is None and ((condition := self._condition) is None or condition.fits(answers))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the answer that the filter uses; raises ConfigError if workers cannot evaluate the condition."""
        read = () if (condition := self._condition) is None else condition.columns
        return frozenset(read if self.rank_by is None else (*read, self.rank_by))

    def validate(self, answers: pa.Schema) -> None:
        """Raise ConfigError, naming the column, if the filter cannot be applied to rows of `answers`."""
        if (condition := self._condition) is not None:
            condition.validate(answers)
        if self.rank_by is not None and not is_orderable(field_of(answers, self.rank_by).type):
            raise ConfigError(f"rank_by: column {self.rank_by!r} has no order")

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the rows that pass the filter."""
        if (condition := self._condition) is not None:
            rows = rows.filter(pa.array(condition.holds(rows)))
        if self.top is None or self.rank_by is None or rows.num_rows <= self.top:
            return rows
        ranked = rows.column(self.rank_by)
        ranks = np.where(ranked.is_valid().to_numpy(), column_ranks(ranked), -1)
        order = np.lexsort((*content_keys(rows)[::-1], -ranks))[: self.top]
        return rows.take(pa.array(np.sort(order)))

    def describe(self) -> dict[str, Any]:
        """Return the settings that are not None, as JSON values."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def _condition(self) -> Condition | None:
        if isinstance(self.having, SparkCondition):
            raise ConfigError(
                f"having= is a Spark Column, {self.having}, which only Spark evaluates, and this runs without it: write a text "
                f"such as 'total > 100'"
            )
        return None if self.having is None else Condition(self.having, "having")
