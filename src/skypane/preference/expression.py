"""Arithmetic over columns: numbers, columns, + - * / **, signs, parentheses, abs, sqrt, log, exp, min, max.

The syntax is Python's, and Python's own parser reads it. Every node is checked against a list of allowed nodes before
anything is evaluated, and evaluation calls only the functions below. A column whose name is not an identifier is
written in backticks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import reduce
from keyword import iskeyword
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skypane import kernels
from skypane.naming import backticked, shortened
from skypane.types import ConfigError, FloatArray


def _kernel(name: str) -> Callable[..., Any]:
    """Return a function of `kernels.elementary`; the first call loads it."""

    def call(*values: Any) -> Any:
        return getattr(kernels.elementary, name)(*values)

    return call


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: _kernel("power"),
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_FUNCTIONS: Mapping[str, tuple[Callable[..., Any], range]] = {
    "abs": (np.abs, range(1, 2)),
    "sqrt": (np.sqrt, range(1, 2)),
    "log": (_kernel("log"), range(1, 2)),
    "exp": (_kernel("exp"), range(1, 2)),
    "min": (np.minimum, range(2, 100)),
    "max": (np.maximum, range(2, 100)),
}
_NAMES = ", ".join(_FUNCTIONS)
_SIGNS: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.USub: "- ", ast.UAdd: "+ ",
}  # fmt: skip
_IN_SQL: Final = {"min": "least", "max": "greatest"}
_SQL_NUMBER: Final = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS: Final = 38
_LARGEST: Final = Decimal(float(np.finfo(np.float64).max))
_DOUBLE, _WHOLE, _NUMBER, _FRACTION = "double", "whole", "number", "fraction"
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_DEEPEST = 200
"""The deepest nesting of operations; a sum of n terms has depth n - 1. It is far below Python's recursion limit."""


class Expression:
    """The checked syntax tree of `text`; raises ConfigError, naming the position, for a node that is not allowed."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        source, self._quoted = _without_quotes(self._text)
        self._source = re.sub(r"\s", " ", source)  # an expression may span several lines
        if "#" in self._source:
            raise ConfigError(f"{self._called}: cannot read '#'; write a column of such a name in backticks")
        try:
            self._tree = ast.parse(self._source, mode="eval").body
        except (SyntaxError, ValueError) as error:
            at = getattr(error, "offset", None) or 1
            raise ConfigError(
                f"{self._called}: cannot read it at character {at}; write arithmetic over columns"
            ) from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None
        if _depth(self._tree) > _DEEPEST:
            raise self._too_deep()
        self._check(self._tree)

    def columns(self) -> Iterator[str]:
        """Yield the columns in the order written, with repetitions."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        names = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called]
        for node in sorted(names, key=lambda name: name.col_offset):
            yield self._column(node)

    def canonical(self) -> str:
        """Return the expression with single spaces, and only the parentheses and backticks that it needs."""
        tree = ast.parse(self._source, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                column = self._column(node)
                node.id = column if _is_plain(column) else backticked(column)
        return ast.unparse(tree)

    @property
    def column(self) -> str | None:
        """The column that the expression is; None if it computes something."""
        return self._column(self._tree) if isinstance(self._tree, ast.Name) else None

    def is_of_doubles(self, kinds: Mapping[str, pa.DataType], *, functions: bool = False) -> bool:
        """Return whether SQL computes all of it with doubles, as evaluate() does; a column of whole numbers is converted.

        functions   whether those may be in it whose last bits, or values outside their domains, are not those of Spark
        """
        return self._type(self._tree, kinds, functions) == _DOUBLE

    def sql(self) -> str:
        """Return the expression in SQL; least() and greatest() skip nulls, and NaN, but a row that lacks a part has no score."""
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and _name(node) in _IN_SQL]
        checked = (part for call in calls for part in call.args if _name(part) not in _IN_SQL)
        parts = dict.fromkeys(self._sql(part) for part in checked if not isinstance(part, ast.Constant))
        lacks = " OR ".join(f"coalesce(CAST({part} AS STRING), 'NaN') = 'NaN'" for part in parts)
        value = self._sql(self._tree)
        return f"if({lacks}, NULL, {value})" if lacks else value

    def evaluate(self, columns: Mapping[str, FloatArray]) -> Any:
        """Return the value of each row, or a single value if no column is involved; `columns` have shape (n,)."""
        return self._value(self._tree, columns)

    def _value(self, node: ast.expr, columns: Mapping[str, FloatArray]) -> Any:
        match node:
            case ast.Constant(value):
                return np.float64(value)  # type: ignore[arg-type]
            case ast.Name():
                return columns[self._column(node)]
            case ast.UnaryOp(op, operand):
                return _OPERATORS[type(op)](self._value(operand, columns))
            case ast.BinOp(left, op, right):
                return _OPERATORS[type(op)](self._value(left, columns), self._value(right, columns))
            case ast.Call(ast.Name(name), args) if len(args) == 1:
                return _FUNCTIONS[name][0](self._value(args[0], columns))
            case ast.Call(ast.Name(name), args):
                return reduce(_FUNCTIONS[name][0], (self._value(arg, columns) for arg in args))
        raise AssertionError(f"unchecked node {node!r}")

    def _type(self, node: ast.expr, kinds: Mapping[str, pa.DataType], functions: bool) -> str:
        """Return what SQL makes of a part: a double, a whole number, a literal with or without a fraction; "" for all else."""
        match node:
            case ast.Constant(value):
                return self._literal(node, value)
            case ast.Name():
                kind = kinds[self._column(node)]
                return _DOUBLE if pa.types.is_float64(kind) else _WHOLE if pa.types.is_signed_integer(kind) else ""
            case ast.UnaryOp(_, operand):
                inner = self._type(operand, kinds, functions)
                twice = inner == _NUMBER and not isinstance(operand, ast.Constant)  # -(-2147483648) overflows in SQL
                return "" if inner == _WHOLE or twice else inner
            case ast.BinOp(left, op, right):
                types = [self._type(side, kinds, functions) for side in (left, right)]
                return _operated(op, types, right, functions)
            case ast.Call(ast.Name(name), args):
                types = [self._type(arg, kinds, functions) for arg in args]
                if not (functions or name in {"abs", "sqrt", *_IN_SQL}):
                    return ""
                return _converted([*types, _DOUBLE] if name in {"sqrt", "log", "exp"} else types)
        raise AssertionError(f"unchecked node {node!r}")

    def _literal(self, node: ast.expr, value: object) -> str:
        written = self._written(node)
        if not _SQL_NUMBER.fullmatch(written) or sum(map(str.isdigit, written)) > _MOST_DIGITS:
            return ""
        if isinstance(value, float):
            return _FRACTION if Decimal(written) <= _LARGEST else ""
        return _NUMBER if int(written) < 2**63 else ""

    def _sql(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value):
                written = self._written(node)
                return written if _SQL_NUMBER.fullmatch(written) else repr(value)
            case ast.Name():
                return backticked(self._column(node))
            case ast.UnaryOp(op, operand):
                return f"({_SIGNS[type(op)]}{self._sql(operand)})"
            case ast.BinOp(left, ast.Pow(), right):
                return f"power({self._sql(left)}, {self._sql(right)})"
            case ast.BinOp(left, op, right):
                return f"({self._sql(left)} {_SIGNS[type(op)]} {self._sql(right)})"
            case ast.Call(ast.Name(name), args):
                return f"{_IN_SQL.get(name, name)}({', '.join(map(self._sql, args))})"
        raise AssertionError(f"unchecked node {node!r}")

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                self._check_number(node, value)
            case ast.Name():
                pass
            case ast.UnaryOp(op, operand) if type(op) in _OPERATORS:
                self._check(operand)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                self._check(left)
                self._check(right)
            case ast.Call(ast.Name(name), args, []):
                self._check_call(node, name, args)
            case _:
                raise self._refusal(node, f"write numbers, columns, + - * / ** and {_NAMES}")

    def _check_number(self, node: ast.Constant, value: float) -> None:
        try:
            float(value)
        except OverflowError:
            raise self._refusal(node, "it is beyond float64") from None

    def _check_call(self, node: ast.Call, name: str, args: list[ast.expr]) -> None:
        if name not in _FUNCTIONS:
            raise self._refusal(node, f"the functions are {_NAMES}")
        arity = _FUNCTIONS[name][1]
        if len(args) not in arity:
            wanted = "one argument" if arity.stop == 2 else "two arguments or more"
            raise self._refusal(node, f"{name}() takes {wanted}")
        for arg in args:
            self._check(arg)

    def _refusal(self, node: ast.expr, reason: str) -> ConfigError:
        source = self._source.encode()
        start = len(source[: node.col_offset].decode())
        stop = len(source[: node.end_col_offset].decode())
        part = shortened(self._text[start:stop])
        return ConfigError(f"{self._called}: {part!r} at character {start + 1} is not allowed; {reason}")

    def _too_deep(self) -> ConfigError:
        return ConfigError(
            f"{self._called}: more than {_DEEPEST} nested operations; compute parts of it as columns first"
        )

    @property
    def _called(self) -> str:
        return f"score {shortened(self._text)!r}"

    def _column(self, node: ast.Name) -> str:
        written = self._written(node)  # node.id is NFKC-normalised, and may name another column
        return self._quoted.get(written, written)

    def _written(self, node: ast.expr) -> str:
        return self._source.encode()[node.col_offset : node.end_col_offset].decode()


def _operated(op: ast.operator, types: list[str], right: ast.expr, functions: bool) -> str:
    """Return the type of an operation; a division by zero is an error in Spark."""
    if isinstance(op, ast.Div):
        if not (functions or (isinstance(right, ast.Constant) and right.value)):
            return ""
        return _DOUBLE if types == [_WHOLE, _NUMBER] else _converted(types)
    return "" if isinstance(op, ast.Pow) and not functions else _converted(types)


def _converted(types: list[str]) -> str:
    """Return the type of what SQL computes of values of several types: a double if one is, and the others become doubles."""
    return _DOUBLE if _DOUBLE in types and "" not in types else ""


def has_comment(text: str) -> bool:
    """Return whether a text would have a comment in SQL."""
    return "--" in _QUOTED.sub("", text)


def _name(node: ast.expr) -> str | None:
    """Return the name of the function that a node calls; None if it calls none."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _is_plain(column: str) -> bool:
    return column.isascii() and column.isidentifier() and not iskeyword(column)


def _depth(tree: ast.expr) -> int:
    """Return the depth of nested operations and calls, without recursion: this check guards against deep recursion."""
    deepest, todo = 0, [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        todo.extend((inner, depth + 1) for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.expr))
    return deepest


def _without_quotes(text: str) -> tuple[str, dict[str, str]]:
    """Return `text` with an identifier of the same width for each backticked column, and the columns by identifier."""
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        number = len(quoted)
        while (name := f"_{number}".ljust(len(match[0]), "_")) in text or name in quoted:
            number += 1
        quoted[name] = match[1].replace("``", "`")
        return name

    return _QUOTED.sub(stand_in, text), quoted
