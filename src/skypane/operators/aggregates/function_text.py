"""Aggregate functions as text: "sum(amount)", "avg(amount, where=paid == 'card')", "count_if(amount > 10)".

Python's parser reads the text, but Python never evaluates it: a name is a column, and another expression in its place
is SQL, "sum(price * pieces)". A string is a column with an unusual name, or SQL that Python's parser does not read,
"sum('CAST(price AS INT)')". A condition is as in where=. A user's own functions and accumulators are named with their module:
"accumulate(traffic.QueueEnd(cabs=3))", "in_order(traffic.longest_rise, amount, returns=int64)". The caller resolves such
names or refuses them; the resolved object is called where the text calls it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from skypane.naming import shortened
from skypane.operators.aggregates import registry
from skypane.operators.aggregates.functions import Function
from skypane.plugins import Registered
from skypane.types import ConfigError

WORDS: Final[Mapping[str, Callable[..., Function]]] = Registered(registry)

Named: TypeAlias = Callable[[str], Any]
"""Returns the object "module.name"; raises ConfigError, importing nothing, if it must not run, or if it is missing."""

_CONDITIONS: Final = ("where", "condition")
_COLUMNS: Final = ("column", "columns", "order")
"""The parameters that take a column, or an expression in its place."""
_EVERY_ROW: Final = re.compile(r"^(count\s*\(\s*)\*(?=\s*[,)])")
"""The star of count(*), which Python's parser does not read."""


def function_of(text: str, named: Named) -> Function:
    """Return the function that a text describes; raise ConfigError, naming the fault, if it describes none."""
    try:
        source = _EVERY_ROW.sub(r"\1'*'", text.strip())
        call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{shortened(text)!r} is not an aggregate function: write one such as sum(amount)") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ConfigError(f"{shortened(text)!r} is not an aggregate function: write one such as sum(amount)")
    word = call.func.id
    if word not in WORDS:
        raise ConfigError(f"unknown aggregate function {word!r}; there are {', '.join(WORDS)}")
    function = WORDS[word]
    try:
        bound = inspect.signature(function).bind(*call.args, **{_keyword(k, text): k.value for k in call.keywords})
    except TypeError as error:
        raise ConfigError(f"{shortened(text)!r}: {error}; write {word}{_signature(function)}") from error
    for name, node in bound.arguments.items():
        each = [_argument(name, one, source, named) for one in node] if isinstance(node, tuple) else None
        bound.arguments[name] = _argument(name, node, source, named) if each is None else tuple(each)
    return function(*bound.args, **bound.kwargs)


def _keyword(keyword: ast.keyword, text: str) -> str:
    if keyword.arg is None:
        raise ConfigError(f"{shortened(text)!r}: ** is not allowed; name each argument")
    return keyword.arg


def _argument(name: str, node: ast.expr, text: str, named: Named) -> Any:
    if name in _CONDITIONS:
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    if name == "returns":
        return _type(ast.unparse(node).strip("'"), text)
    if name in _COLUMNS and not isinstance(node, ast.Constant) and not _is_code(node):
        return ast.get_source_segment(text, node)  # also a.b, the field of a struct
    if isinstance(node, ast.Attribute):
        return named(ast.unparse(node))
    if isinstance(node, ast.Call):
        return _made(node, text, named)
    return node.id if isinstance(node, ast.Name) else _value(node, text)


def _value(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise ConfigError(f"{shortened(text)!r}: {ast.unparse(node)!r} is neither a column nor a number") from error


def _is_code(node: ast.expr) -> bool:
    """Return whether an expression is a call of a user's own code, which is named with its module; others are SQL."""
    return isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)


def _made(call: ast.Call, text: str, named: Named) -> Any:
    """Return the result of calling a user's own object with columns and numbers."""
    make = named(ast.unparse(call.func))
    arguments = [_argument("", node, text, named) for node in call.args]
    try:
        return make(*arguments, **{_keyword(k, text): _argument("", k.value, text, named) for k in call.keywords})
    except TypeError as error:
        raise ConfigError(f"{shortened(text)!r}: {error}") from error


def _type(name: str, text: str) -> pa.DataType:
    try:
        return pa.type_for_alias(name)
    except ValueError as error:
        raise ConfigError(
            f"{shortened(text)!r}: returns={name} is not an Arrow type; write one such as int64 or bool"
        ) from error


def _signature(function: Callable[..., Function]) -> str:
    """Return the names of the parameters, optional ones with a ?."""
    parameters = inspect.signature(function).parameters.values()
    return f"({', '.join(p.name if p.default is p.empty else f'{p.name}?' for p in parameters)})"


__all__ = ["WORDS", "function_of"]
