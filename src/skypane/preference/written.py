"""Expressions in place of columns, as users write them: SQL texts and Spark Columns, whose values only Spark knows.

A query is made before its rows are known. Until then it holds a Written where the name of a column belongs. Once the
rows are known, runtime/spark/projection.py has Spark compute a column for each, and named() puts its name in the place.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, Self, TypeAlias, cast

from skypane.naming import backticked

Key: TypeAlias = tuple[str, int]
"""The identity of an expression: its text, and the object that is its Spark Column."""

_ALIAS = re.compile(r"\sAS\s+(?:`([^`]+)`|([^\W\d]\w*))\s*$", re.IGNORECASE)
"""An alias at the end of a text in SQL; no other expression ends so, because that of a CAST is in parentheses."""


class SparkColumn(Protocol):
    """The method by which a Spark Column, such as df.price, is recognised."""

    def eqNullSafe(self, other: Any, /) -> Any: ...


class Written(str):
    """An expression in place of a column's name; as a text it is what the user wrote, or how the Spark Column shows itself.

    sql       the text in SQL, or how the Spark Column shows itself
    argument  the argument in which it was written, for errors
    column    the Spark Column; None: the text is SQL, or the name of a column
    quoted    whether it is a text of another syntax, a condition, in which the name of its column is quoted
    """

    __slots__ = ("argument", "column", "quoted", "sql")

    sql: str
    argument: str
    column: SparkColumn | None
    quoted: bool

    def __new__(cls, sql: str, argument: str, column: SparkColumn | None = None, quoted: bool = False) -> Self:
        written = super().__new__(cls, backticked(sql.replace("`", "")) if quoted else sql)
        written.sql, written.argument, written.column, written.quoted = sql, argument, column, quoted
        return written

    def __reduce__(self) -> tuple[type[Written], tuple[str, str, None, bool]]:
        """Return what is pickled: a Spark Column belongs to its session, and is left out."""
        return Written, (self.sql, self.argument, None, self.quoted)

    @property
    def key(self) -> Key:
        return self.sql, id(self.column)

    def named(self, name: str) -> str:
        """Return what replaces the expression if its column is called `name`."""
        plain = name.isidentifier() and not keyword.iskeyword(name)
        return backticked(name) if self.quoted and not plain else name


def identity(column: str) -> str | Key:
    """Return what is equal for the same column only: Spark Columns of two functions called alike show themselves alike."""
    return column.key if isinstance(column, Written) else column


def name_in(sql: str) -> str:
    """Return the name of the column that a text in SQL stands for: its alias, or the text.

    >>> name_in("upper(shop) AS who"), name_in("CAST(price AS INT)")
    ('who', 'CAST(price AS INT)')
    """
    alias = _ALIAS.search(sql)
    return (alias[1] or alias[2]) if alias else sql.strip()


def as_alias(sql: str, called: str) -> str | None:
    """Return a text whose alias, Spark's name `called`, follows without AS, with AS; None if it has no such alias.

    >>> as_alias("unit price", "price"), as_alias("unit.price", "price"), as_alias("unit + price", "(unit + price)")
    ('unit AS price', None, None)
    """
    text = sql.strip()
    alias = next((one for one in (called, backticked(called)) if text.endswith(one)), text)
    before = text.removesuffix(alias).rstrip()
    if not before or before.endswith(".") or _ALIAS.search(sql):
        return None
    return f"{before} AS {alias}"


def unaliased(sql: str) -> str:
    """Return a text in SQL without its alias.

    >>> unaliased("upper(shop) AS who"), unaliased("CAST(price AS INT)")
    ('upper(shop)', 'CAST(price AS INT)')
    """
    return _ALIAS.sub("", sql).strip()


def expressions(value: object) -> Iterator[Written]:
    """Yield each expression in a query, or in the tuples and dataclasses that it is made of."""
    if isinstance(value, Written):
        yield value
    for part in _parts(value):
        yield from expressions(part)


def named(value: Any, names: Mapping[Key, str]) -> Any:
    """Return a query with the names of columns in place of its expressions; the same object if it has none."""
    if isinstance(value, Written):
        return value.named(names[value.key])
    if next(expressions(value), None) is None:
        return value
    if isinstance(value, list | tuple):
        return type(value)(named(part, names) for part in value)
    other = object.__new__(type(value))
    for item in fields(value):
        object.__setattr__(other, item.name, named(getattr(value, item.name), names))
    if hasattr(other, "__post_init__"):
        other.__post_init__()  # its checks, again: two expressions may be one column
    return other


def _parts(value: object) -> list[Any]:
    if type(value) in {list, tuple}:
        return list(cast("list[Any]", value))
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, item.name) for item in fields(value)]
    return []
