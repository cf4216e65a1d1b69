"""Aggregate functions as texts: "sum(amount)", "avg(amount, where=paid == 'card')", "count_if(amount > 10)".

Read by Python's own parser and never evaluated by Python: a name is a column, a text one with an unusual name, and a
condition is as in where=. What a user has written is named with its module: "keep(traffic.QueueEnd(cabs=3))",
"in_order(traffic.longest_rise, amount, returns=int64)". Whoever reads such texts says whether a name becomes what it names,
and refuses it otherwise: what is named is called, where the text calls it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from skypane.naming import registered, shortened
from skypane.operators.aggregates import registry
from skypane.operators.aggregates.functions import Function
from skypane.types import ConfigError

WORDS: Final[Mapping[str, Callable[..., Function]]] = registered(registry)

Named: TypeAlias = Callable[[str], Any]
"""What "module.name" names; ConfigError, with nothing imported, if it is not to be run, or if it names nothing."""

_CONDITIONS: Final = ("where", "condition")


def function_of(text: str, named: Named) -> Function:
    """Return the function that a text names; ConfigError, naming what is wrong, if it names none."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{shortened(text)!r} is no aggregate function: write one such as sum(amount)") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ConfigError(f"{shortened(text)!r} is no aggregate function: write one such as sum(amount)")
    word = call.func.id
    if word not in WORDS:
        raise ConfigError(f"there is no aggregate function {word!r}; there are {', '.join(WORDS)}")
    function = WORDS[word]
    try:
        bound = inspect.signature(function).bind(*call.args, **{_keyword(k, text): k.value for k in call.keywords})
    except TypeError as error:
        raise ConfigError(f"{shortened(text)!r}: {error}; write {word}{_signature(function)}") from error
    for name, node in bound.arguments.items():
        each = [_argument(name, one, text, named) for one in node] if isinstance(node, tuple) else None
        bound.arguments[name] = _argument(name, node, text, named) if each is None else tuple(each)
    return function(*bound.args, **bound.kwargs)


def _keyword(keyword: ast.keyword, text: str) -> str:
    if keyword.arg is None:
        raise ConfigError(f"{shortened(text)!r}: ** has no meaning here")
    return keyword.arg


def _argument(name: str, node: ast.expr, text: str, named: Named) -> Any:
    if name in _CONDITIONS:
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    if name == "returns":
        return _type(ast.unparse(node).strip("'"), text)
    if isinstance(node, ast.Attribute):
        return named(ast.unparse(node))
    if isinstance(node, ast.Call):
        return _made(node, text, named)
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise ConfigError(
            f"{shortened(text)!r}: {ast.unparse(node)!r} is no column and no number; expressions are computed before, "
            f"as columns of their own"
        ) from error


def _made(call: ast.Call, text: str, named: Named) -> Any:
    """Return what a call of something of a user's own makes, from columns and numbers."""
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
            f"{shortened(text)!r}: returns={name} is no type of Arrow's, such as int64 or bool"
        ) from error


def _signature(function: Callable[..., Function]) -> str:
    """Return the names of the parameters, those that may be left out with a ?."""
    parameters = inspect.signature(function).parameters.values()
    return f"({', '.join(p.name if p.default is p.empty else f'{p.name}?' for p in parameters)})"


__all__ = ["WORDS", "function_of"]
