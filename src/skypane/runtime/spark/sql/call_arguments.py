"""The arguments of a call in SQL: the columns of its table, and the values of its constants, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument

from skypane.naming import instead
from skypane.types import ConfigError

TABLE = "table"


@dataclass(frozen=True)
class CallArguments:
    """The columns of the table, and the values of the arguments that are given and not NULL."""

    columns: StructType
    given: Mapping[str, Any]


def call_of(
    parameters: Sequence[str],
    needed: Sequence[str],
    arguments: Sequence[AnalyzeArgument],
    named: Mapping[str, AnalyzeArgument],
) -> CallArguments:
    """Return the arguments of a call by name; raise ConfigError, naming the argument, if they do not fit.

    parameters   the names of those after the table, in order
    needed       the names of those without a default
    """
    names = (TABLE, *parameters)
    if len(arguments) > len(names):
        raise ConfigError(f"got {len(arguments)} arguments; there are {', '.join(names)}")
    placed = dict(zip(names, arguments, strict=False))
    for name in named:
        if name not in names:
            raise ConfigError(f"there is no argument {name!r}; {instead(name, names)}")
        if name in placed:
            raise ConfigError(f"{name} is given twice, in its place and by name")
    placed |= named
    return CallArguments(_columns(placed.pop(TABLE, None)), _values(placed, needed))


def _columns(table: AnalyzeArgument | None) -> StructType:
    if table is None or not table.isTable or not isinstance(table.dataType, StructType):
        raise ConfigError("the first argument must be a table: write TABLE(offers), or TABLE(SELECT ... FROM offers)")
    return table.dataType


def _values(placed: Mapping[str, AnalyzeArgument], needed: Sequence[str]) -> dict[str, Any]:
    for name, argument in placed.items():
        if argument.isTable:
            raise ConfigError(f"{name} must be a constant, got a table")
        if not argument.isConstantExpression:
            kind = argument.dataType.simpleString()
            raise ConfigError(f"{name} must be a constant, got an expression of type {kind} that depends on rows")
    given = {name: argument.value for name, argument in placed.items() if argument.value is not None}
    missing = [name for name in needed if name not in given]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return given
