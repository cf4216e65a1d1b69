"""A score per row: arithmetic over columns, "2 * rating - log(price)", any other SQL, or a Spark Column.

A column is ranked by its values, of whatever type. Workers compute arithmetic (expression.py has the grammar) where all of it
is of doubles, in float64, as Spark does. Spark computes all else, and the score is the column of its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from skypane.naming import shortened
from skypane.preference.column import ColumnLike, is_spark_column, quoted_column
from skypane.preference.column_checks import field_of, is_orderable
from skypane.preference.dense_ranks import column_ranks
from skypane.preference.expression import Expression, has_comment
from skypane.preference.orient import is_whole, whole_numbers
from skypane.preference.written import Written
from skypane.types import BadInputError, ConfigError, FloatArray, IntArray
from skypane.wording import counted

_LAST = np.iinfo(np.int64).max


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
        """Raise ConfigError, naming column and type, if a column is missing, or workers cannot compute with its type."""
        kinds = {column: field_of(schema, column).type for column in self.columns}
        if (column := self._expression.column) is not None:
            if not is_orderable(kinds[column]):
                raise ConfigError(f"column {column!r} of type {kinds[column]} has no order, and cannot be a score")
        elif not self._expression.is_of_doubles(kinds, functions=True):
            types = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
            raise ConfigError(
                f"score {shortened(self.text)!r} cannot be computed without Spark ({types}): workers compute with doubles"
            )

    def for_types(self, schema: pa.Schema) -> Score:
        """Return the score with a column that Spark computes for arithmetic that is not of doubles in rows of `schema`."""
        expression, columns = self._expression, self.columns
        if isinstance(self.text, Written) or (expression.column in schema.names):
            return self
        kinds = {column: schema.field(column).type for column in columns if column in schema.names}
        if len(kinds) == len(columns) and expression.is_of_doubles(kinds):
            return self
        return Score(quoted_column(expression.sql(), "score"))

    def keys(self, table: pa.Table, *, largest: bool) -> IntArray:
        """Return integers in the order of the scores, the best first, shape (n,); those of NaN are last."""
        column = self._expression.column
        if column is None or pa.types.is_floating(table.column(column).type):
            scores = self.values(table)
            return _ascending_keys(-scores if largest else scores)
        values = _valid(table, column)
        whole = is_whole(values.type) and values.type != pa.uint64()
        keys = whole_numbers(values).astype(np.int64) if whole else column_ranks(values)
        return ~keys if largest else keys

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
    # NumPy may compute other last bits on strided than on contiguous arrays; the score must not depend on the layout.
    return np.ascontiguousarray(_valid(table, name).to_numpy(), np.float64)


def _valid(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if column.null_count:
        raise BadInputError(f"column {name!r} is null in {counted(column.null_count, 'rows')}; drop or fill them first")
    return column


def _ascending_keys(scores: FloatArray) -> IntArray:
    """Return integers in the order of `scores`: -0.0 equals 0.0, and all NaNs are equal and last."""
    bits = (scores + 0.0).view(np.int64)
    # IEEE 754 numbers are sign and magnitude; inverting the magnitude bits of negative numbers gives two's complement.
    keys = bits ^ ((bits >> 63) & _LAST)
    keys[np.isnan(scores)] = _LAST
    return keys
