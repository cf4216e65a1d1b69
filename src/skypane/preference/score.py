"""A score per row: arithmetic over columns, "2 * rating - log(price)", any other SQL, or a Spark Column.

Workers compute arithmetic (expression.py has the grammar) in float64: whole numbers beyond 2**53 are rounded, and
undefined values such as 0/0 or log(-1) are NaN. Spark computes all else, and the score is the column of its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from skypane.naming import shortened
from skypane.preference.column import ColumnLike, is_spark_column, quoted_column
from skypane.preference.column_checks import field_of
from skypane.preference.expression import Expression, has_comment
from skypane.preference.written import Written
from skypane.types import BadInputError, ConfigError, FloatArray
from skypane.wording import counted


@dataclass(frozen=True)
class Score:
    """Arithmetic over columns, checked when built; raises ConfigError, naming the position of a part that is not allowed.

    >>> score = sp.Score("rating - price / 100")
    >>> score.columns
    ('rating', 'price')
    """

    #: the canonical form of the text that was passed, so that equal scores have equal texts
    text: str

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError(f"score {shortened(self.text)!r} names no column; all rows would have the same score")
        if not isinstance(self.text, Written):
            object.__setattr__(self, "text", self._expression.canonical())

    @classmethod
    def of(cls, score: Score | ColumnLike) -> Score:
        """Return `score`; of a text or a Spark Column, the score that it writes, which Spark computes unless it is arithmetic."""
        return score if isinstance(score, Score) else cls(_text_of(score))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the score needs, in the order written, without repetition."""
        return tuple(dict.fromkeys(self._expression.columns()))

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if a column is missing or not numeric."""
        for column in self.columns:
            kind = field_of(schema, column).type
            t = pa.types
            if not (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind)):
                raise ConfigError(
                    f"column {column!r} of type {kind} is not a number, so {shortened(self.text)!r} cannot be computed"
                )

    def values(self, table: pa.Table) -> FloatArray:
        """Return the score of each row, shape (n,); raise BadInputError, naming the column, if one is null in a row."""
        columns = {name: _numbers(table, name) for name in self.columns}
        with np.errstate(all="ignore"):
            scores = self._expression.evaluate(columns)
        return np.asarray(np.broadcast_to(scores, table.num_rows), np.float64)

    @cached_property
    def _expression(self) -> Expression:
        return Expression(self.text)

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text}

    def __str__(self) -> str:
        return self.text


def _text_of(score: ColumnLike) -> str:
    """Return the text of a score: arithmetic as it is, and in place of other SQL, or a Spark Column, the column of its values."""
    if is_spark_column(score):
        return quoted_column(score, "score")
    if not isinstance(score, str):
        raise ConfigError(f"score must be a text such as '2 * rating - price' or a Spark Column, got {score!r}")
    try:
        Expression(score)
    except ConfigError:
        if not score.strip():
            raise
        return quoted_column(score, "score")
    if has_comment(score):
        raise ConfigError(f"score {shortened(score)!r}: -- begins a comment in SQL; write a - (-b)")
    return score


def _numbers(table: pa.Table, name: str) -> FloatArray:
    column = table.column(name)
    if column.null_count:
        raise BadInputError(f"column {name!r} is null in {counted(column.null_count, 'rows')}; drop or fill them first")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # NumPy may compute other last bits on strided than on contiguous arrays; the score must not depend on the layout.
    return np.ascontiguousarray(column.to_numpy(), np.float64)
