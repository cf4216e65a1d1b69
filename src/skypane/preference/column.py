"""A column as a user writes it: by its name, as SQL, or as a Spark Column; Spark reads all but plain names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeGuard

from skypane.preference.written import SparkColumn, Written
from skypane.types import ConfigError

ColumnLike: TypeAlias = str | SparkColumn
"""A column's name, an expression in SQL such as "price * 2", or a Spark Column."""

Columns: TypeAlias = ColumnLike | Sequence[ColumnLike]
"""One column or several."""

_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+\.?\d*(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<mark>[-+*/(),]))")
_OPERATORS = frozenset("+-*/")
_CALLS = {"negative": "-", "ln": "log", "least": "min", "greatest": "max", "abs": "abs", "sqrt": "sqrt", "exp": "exp"}


def column_name(column: object, argument: str) -> str:
    """Return the name of a column, or an expression in its place; raise ConfigError, naming `argument`, if it is none.

    An identifier is a name. Another text, or a Spark Column, is a Written: Spark says what it is, once rows are known.
    """
    if isinstance(column, str):
        return column if isinstance(column, Written) or column.isidentifier() else Written(column, argument)
    if is_spark_column(column):
        return Written(_shown(column), argument, column)
    raise ConfigError(f"{argument} must name a column, got {column!r}")


def quoted_column(expression: ColumnLike, argument: str) -> Written:
    """Return SQL, or a Spark Column, as a text of another syntax: the name, in quotes, of the column that Spark computes."""
    if isinstance(expression, str):
        return Written(expression, argument, None, quoted=True)
    if is_spark_column(expression):
        return Written(_shown(expression), argument, expression, quoted=True)
    raise ConfigError(f"{argument} must be a text or a Spark Column, got {expression!r}")


def is_spark_column(value: object) -> TypeGuard[SparkColumn]:
    """Return whether a value is a Spark Column, classic or over Spark Connect."""
    return hasattr(value, "eqNullSafe")


def score_text(column: SparkColumn) -> str:
    """Return the arithmetic of a Spark Column as the text of a score; raise ValueError if a score cannot express it.

    Spark writes `df.rating - 0.1 * df.price` as -(rating, *(price, 0.1)).
    """
    shown = _shown(column)
    try:
        return _read(shown)
    except IndexError as error:
        raise ValueError(shown) from error


def _read(shown: str) -> str:
    tokens = list(_tokens(shown))
    text = _term(tokens)
    if tokens:
        raise ValueError(shown)
    return text


def _shown(column: SparkColumn) -> str:
    return str(column).removeprefix("Column<'").removesuffix("'>")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(text)
        # A minus before a parenthesis is the name of an operator; before a digit it is a sign.
        yield match[0].strip()
        at = match.end()


def _term(tokens: list[str]) -> str:
    """Remove one term from the front of `tokens` and return it in the syntax of scores."""
    head = tokens.pop(0)
    if not tokens or tokens[0] != "(":
        return f"({head})" if head.startswith("-") else head
    tokens.pop(0)
    arguments = [_term(tokens)]
    while (mark := tokens.pop(0)) == ",":
        arguments.append(_term(tokens))
    if mark != ")":
        raise ValueError(mark)
    if head in _OPERATORS and len(arguments) > 1:
        return f"({f' {head} '.join(arguments)})"
    if head in {"power", "pow"} and len(arguments) > 1:
        return f"({' ** '.join(arguments)})"
    if head == "-":
        head = "negative"
    return f"{_CALLS[head]}({', '.join(arguments)})" if head in _CALLS else _unknown(head)


def _unknown(function: str) -> str:
    raise ValueError(function)
