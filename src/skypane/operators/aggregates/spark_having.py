"""A condition on answers that Spark evaluates, as a job of a stream holds it and as its checkpoint records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from skypane.preference.written import SparkColumn

_HAVING: Final = "having"
_BY_SPARK: Final = "having_by_spark"
_PARTS: Final = (_HAVING, _BY_SPARK)


@dataclass(frozen=True)
class SparkHaving:
    """A condition that is true for the rows of answers to keep, apart from the query, whose code runs without Spark.

    text    SQL, or how the Spark Column shows itself
    reads   the columns of the answers that it reads
    column  the Spark Column; None: the text is SQL
    shown   whether the text is how a Spark Column shows itself, which is not SQL
    """

    text: str
    reads: tuple[str, ...]
    column: SparkColumn | None = field(default=None, compare=False)
    shown: bool = False

    def describe(self) -> dict[str, Any]:
        """Return what the description of the query has of it: as `having` of workers, and how Spark evaluates it."""
        return {_HAVING: self.text, _BY_SPARK: {"reads": list(self.reads), "column": self.shown}}

    @classmethod
    def recorded(cls, query: Mapping[str, Any]) -> Self | None:
        """Return the condition in the recorded description of a query; None if Spark evaluates none there."""
        if _BY_SPARK not in query:
            return None
        how = query[_BY_SPARK]
        return cls(query[_HAVING], tuple(how["reads"]), shown=how["column"])


def of_workers(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded description of a query without a condition that Spark evaluates."""
    return {name: value for name, value in query.items() if _BY_SPARK not in query or name not in _PARTS}
