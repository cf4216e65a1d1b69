"""Conditions on rows as text in SQL, such as "speed > 50 AND kind IN ('cab', 'bus')": those that workers evaluate, with Arrow.

They evaluate what sql_condition.py reads, for the types that condition_parts.py lists. Spark evaluates all else, and a column
of truth values stands for it: arithmetic, functions, conversions, and whatever depends on its settings. An aggregate uses only
the rows for which the condition is true.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.naming import shortened
from skypane.operators.aggregates.condition_parts import Column, Part
from skypane.operators.aggregates.sql_condition import NotInGrammarError, part_of
from skypane.preference.column import ColumnLike, quoted_column
from skypane.preference.column_checks import field_of
from skypane.types import BoolArray, ConfigError

_ALLOWED: Final = "write comparisons of columns, numbers and texts, joined by AND, OR, NOT"


@dataclass(frozen=True)
class Condition:
    """A condition on rows; the constructor raises ConfigError, naming the part that the grammar has not."""

    text: str
    #: the argument that the user wrote, for errors
    argument: str = field(default="where", compare=False)

    def __post_init__(self) -> None:
        _ = self._part

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition uses, each once."""
        return tuple(dict.fromkeys(self._part.columns()))

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column or types, if workers cannot evaluate the condition on rows of `schema`."""
        for column in self.columns:
            field_of(schema, column)
        if self.fits(schema):
            return
        if isinstance(self._part, Column):
            kind = schema.field(self._part.name).type
            raise ConfigError(f"{self._called} is of type {kind}, not boolean: compare it with a value")
        types = ", ".join(f"{name} is {schema.field(name).type}" for name in self.columns)
        raise ConfigError(f"{self._called} cannot be evaluated without Spark ({types}): {_ALLOWED}")

    def fits(self, schema: pa.Schema) -> bool:
        """Return whether the columns of `schema` have types of which Spark's values are known here."""
        names = [name.lower() for name in schema.names]
        if any(name not in schema.names or names.count(name.lower()) > 1 for name in self.columns):
            return False
        return self._part.fits({name: schema.field(name).type for name in self.columns})

    def holds(self, rows: pa.Table) -> BoolArray:
        """Return the mask of the rows for which the condition is true, shape (n,)."""
        where: BoolArray = pc.fill_null(self._part.value(rows), fill_value=False).to_numpy()
        return np.ascontiguousarray(where, np.bool_)

    @property
    def _called(self) -> str:
        return f"{self.argument}={shortened(self.text)!r}"

    @cached_property
    def _part(self) -> Part:
        try:
            return part_of(self.text)
        except NotInGrammarError as error:
            at = f"{shortened(str(error))!r} is not allowed" if str(error) else "it ends too early"
            raise ConfigError(f"{self._called}: {at}; {_ALLOWED}") from None

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text, "argument": self.argument}


def condition_of(condition: ColumnLike, argument: str) -> str:
    """Return the text of a condition that workers may evaluate: the text itself, or the column of one that Spark computes."""
    if isinstance(condition, str):
        with suppress(ConfigError):
            Condition(condition)
            return condition
    return quoted_column(condition, argument)
