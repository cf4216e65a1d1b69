"""The query of a call in SQL: its arguments, which are constants, as those of the query's constructor."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skypane.naming import shortened, snake_case
from skypane.operators import registry
from skypane.operators.query import Query
from skypane.plugins import Registered
from skypane.runtime.spark.arguments import windows_of
from skypane.runtime.spark.batch import Invalid, check_invalid
from skypane.runtime.spark.sql.aggregate_list import functions_of
from skypane.types import ConfigError
from skypane.windows import Windows

QUERIES: Final[Mapping[str, type[Query]]] = Registered(registry, lambda name, _query: snake_case(name))
"""The queries by the name that they have in job files, too."""

FUNCTIONS: Final = "functions"
_WINDOWS: Final = ("time", "window", "slide", "offset", "invalid", "local")
"""The arguments that each function has besides those of its query."""

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int,),
    "int | None": (int,),
    "bool": (bool,),
    "str | None": (str,),
    "ColumnLike | None": (str,),
    "Preference | str": (str,),
    "Score | ColumnLike": (str,),
    "Columns": (str, list),
    "Mapping[str, Function] | None": (str,),
}
"""The types of a constant, by the annotation of the parameter in the query's constructor."""
_SAID: Final = {int: "a whole number", bool: "true or false", str: "a text", list: "an array of texts"}


@dataclass(frozen=True)
class CalledQuery:
    """A query with the arguments that are not its own; expressions in it have no names yet.

    time     event-time column, or None
    windows  the windows, or None: one answer over all rows
    local    whether the rows that a task has may be answered alone, for a second call to combine them
    """

    query: Query
    time: str | None
    windows: Windows | None
    invalid: Invalid
    local: bool


def sql_name(kind: str) -> str:
    """Return the name of the function of a query."""
    return f"skypane_{kind}"


def parameters_of(kind: str) -> tuple[str, ...]:
    """Return the names of the arguments after the table, in order; the functions of an aggregate are the first."""
    own = _own(kind)
    return tuple(dict.fromkeys((*(name for name in own if name == FUNCTIONS), *own, *_WINDOWS)))


def needed_of(kind: str) -> tuple[str, ...]:
    """Return the names of the arguments without a default."""
    return tuple(
        name for name, parameter in _own(kind).items() if name == FUNCTIONS or parameter.default is parameter.empty
    )


def called_query(kind: str, given: Mapping[str, Any]) -> CalledQuery:
    """Return the query of a call, from the values of its arguments; raise ConfigError, naming the argument."""
    _check_kinds(kind, given)
    arguments = {name: value for name, value in given.items() if name in _own(kind)}
    if FUNCTIONS in arguments:
        arguments[FUNCTIONS] = functions_of(arguments[FUNCTIONS])
    invalid = given.get("invalid", "error")
    check_invalid(invalid)
    query: Query = QUERIES[kind](**arguments)
    return CalledQuery(query, given.get("time"), _windows(kind, given), invalid, given.get("local", False))


def _own(kind: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of the query's constructor, without columns of the answer that are keywords of it."""
    own = inspect.signature(QUERIES[kind]).parameters
    return {name: parameter for name, parameter in own.items() if parameter.kind is not parameter.VAR_KEYWORD}


def _windows(kind: str, given: Mapping[str, Any]) -> Windows | None:
    """Return the windows of a call; None without any, where the time of an aggregate orders rows."""
    window, slide, offset = (given.get(name) for name in ("window", "slide", "offset"))
    if window is None:
        orders = "time" in _own(kind)
        alone = [name for name in ("time", "slide", "offset") if name in given and not (name == "time" and orders)]
        if alone:
            raise ConfigError(f"{alone[0]} needs window, such as window => '1 hour'")
        return None
    if given.get("time") is None:
        raise ConfigError("window needs time, the column of the event time: time => 'ts'")
    if offset is None:
        return windows_of(window, slide)
    return Windows.of(window, slide, offset)


def _check_kinds(kind: str, given: Mapping[str, Any]) -> None:
    kinds = {name: _KINDS.get(str(parameter.annotation)) for name, parameter in _own(kind).items()}
    kinds |= {"time": (str,), "invalid": (str,), "local": (bool,)}
    for name, value in given.items():
        allowed = kinds.get(name)
        if allowed is None or (type(value) in allowed and _holds_texts(value)):
            continue
        wanted = " or ".join(_SAID[one] for one in allowed)
        raise ConfigError(f"{name} must be {wanted}, got {shortened(repr(value))}")


def _holds_texts(value: object) -> bool:
    return not isinstance(value, list) or all(isinstance(item, str) for item in value)
