"""A score per row, written as arithmetic over columns: "2 * rating - log(price)"; see expression.py for what is allowed.

Everything is computed in float64 (whole numbers beyond 2**53 are rounded); what has no value, as 0/0 or log(-1), is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from skypane.naming import shortened
from skypane.preference.column import ColumnLike, score_text
from skypane.preference.expression import Expression
from skypane.preference.schema import field_of
from skypane.types import BadInputError, ConfigError, FloatArray
from skypane.wording import counted


@dataclass(frozen=True)
class Score:
    """A score expression, checked when built; ConfigError with the place of what is not allowed."""

    #: as written when built, from then on in one canonical form, so that equal scores have equal texts
    text: str

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError(f"score {shortened(self.text)!r} names no column; every row would score the same")
        object.__setattr__(self, "text", self._expression.canonical())

    @classmethod
    def of(cls, score: Score | ColumnLike) -> Score:
        """Return `score`, reading it first if it is text or a Spark Column."""
        if isinstance(score, Score):
            return score
        return cls(score if isinstance(score, str) else score_text(score))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns the score needs, in the order written, each once."""
        return tuple(dict.fromkeys(self._expression.columns()))

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if a column is missing or is no number."""
        for column in self.columns:
            kind = field_of(schema, column).type
            t = pa.types
            if not (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind)):
                raise ConfigError(
                    f"column {column!r} of type {kind} is no number, so {shortened(self.text)!r} cannot be computed"
                )

    def values(self, table: pa.Table) -> FloatArray:
        """Return the score of each row, shape (n,); BadInputError naming the column if it is null in some row."""
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


def _numbers(table: pa.Table, name: str) -> FloatArray:
    column = table.column(name)
    if column.null_count:
        raise BadInputError(f"column {name!r} is null in {counted(column.null_count, 'rows')}; drop or fill them first")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # NumPy may give an element of a strided array another last bit than of a contiguous one; the score must not differ.
    return np.ascontiguousarray(column.to_numpy(), np.float64)
