"""A score per row, written as arithmetic over columns: "2 * rating - log(price)".

Numbers, columns, + - * / **, unary minus, parentheses and the functions abs, min, max, sqrt, log, exp; a column whose name
is no identifier stands in backticks. Everything is computed in float64 (whole numbers beyond 2**53 are rounded); what has
no value, as 0/0 or log(-1), is NaN.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from keyword import iskeyword
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.preference.schema import field_of
from skypane.types import BadInputError, ConfigError, FloatArray

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_FUNCTIONS: Mapping[str, tuple[Callable[..., Any], range]] = {
    "abs": (np.abs, range(1, 2)),
    "sqrt": (np.sqrt, range(1, 2)),
    "log": (np.log, range(1, 2)),
    "exp": (np.exp, range(1, 2)),
    "min": (np.minimum, range(2, 100)),
    "max": (np.maximum, range(2, 100)),
}
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True)
class Score:
    """A score expression, checked when built; ConfigError with the place of what is not allowed."""

    #: as written when built, from then on in one canonical form, so that equal scores have equal texts
    text: str

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError(f"score {self.text!r} names no column; every row would score the same")
        object.__setattr__(self, "text", self._expression.canonical())

    @classmethod
    def of(cls, score: Score | str) -> Score:
        """Return `score`, reading it first if it is text."""
        if isinstance(score, str):
            return cls(score)
        if isinstance(score, Score):
            return score
        raise ConfigError(f"a score is text such as '2 * rating - price', got {score!r}")

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
                raise ConfigError(f"column {column!r} of type {kind} is no number, so {self.text!r} cannot be computed")

    def values(self, table: pa.Table) -> FloatArray:
        """Return the score of each row, shape (n,); BadInputError naming the column if it is null in some row."""
        columns = {name: _numbers(table, name) for name in self.columns}
        with np.errstate(all="ignore"):
            scores = self._expression.evaluate(columns)
        return np.asarray(np.broadcast_to(scores, table.num_rows), np.float64)

    @cached_property
    def _expression(self) -> _Expression:
        return _Expression(self.text)

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text}

    def __str__(self) -> str:
        return self.text


class _Expression:
    """The syntax tree of a score, of which every node is known to be allowed."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        source, self._quoted = _without_quotes(self._text)
        self._source = re.sub(r"\s", " ", source)  # so that an expression may take several lines
        if "#" in self._source:
            raise ConfigError(f"score {text!r}: cannot read '#'; a column of such a name stands in backticks")
        try:
            self._tree = ast.parse(self._source, mode="eval").body
        except (SyntaxError, ValueError) as error:
            at = getattr(error, "offset", None) or 1
            raise ConfigError(
                f"score {text!r}: cannot read it at character {at}; write arithmetic over columns"
            ) from None
        self._check(self._tree)

    def columns(self) -> Iterator[str]:
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        names = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called]
        for node in sorted(names, key=lambda name: name.col_offset):
            yield self._column(node)

    def canonical(self) -> str:
        """Return the expression with single spaces, needed parentheses, and needed backticks only."""
        tree = ast.parse(self._source, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                column = self._column(node)
                node.id = column if _is_plain(column) else _backticked(column)
        return ast.unparse(tree)

    def evaluate(self, columns: Mapping[str, FloatArray]) -> Any:
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
                raise self._refusal(node, "only numbers, columns, + - * / ** and functions are")

    def _check_number(self, node: ast.Constant, value: float) -> None:
        try:
            float(value)
        except OverflowError:
            raise self._refusal(node, "only numbers within float64 are") from None

    def _check_call(self, node: ast.Call, name: str, args: list[ast.expr]) -> None:
        if name not in _FUNCTIONS:
            raise self._refusal(node, f"only the functions {', '.join(_FUNCTIONS)} are")
        arity = _FUNCTIONS[name][1]
        if len(args) not in arity:
            wanted = "one argument" if arity.stop == 2 else "two arguments or more"
            raise self._refusal(node, f"only {wanted} for {name}() are")
        for arg in args:
            self._check(arg)

    def _refusal(self, node: ast.expr, allowed: str) -> ConfigError:
        source = self._source.encode()
        start = len(source[: node.col_offset].decode())
        stop = len(source[: node.end_col_offset].decode())
        part = self._text[start:stop]
        return ConfigError(f"score {self._text!r}: {part!r} at character {start + 1} is not allowed; {allowed}")

    def _column(self, node: ast.Name) -> str:
        written = self._written(node)  # node.id would be a normal form of it (NFKC), another column
        return self._quoted.get(written, written)

    def _written(self, node: ast.expr) -> str:
        return self._source.encode()[node.col_offset : node.end_col_offset].decode()


def _is_plain(column: str) -> bool:
    return column.isascii() and column.isidentifier() and not iskeyword(column)


def _backticked(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _without_quotes(text: str) -> tuple[str, dict[str, str]]:
    """Return `text` with each backticked column replaced by an identifier of the same width, and what each stands for."""
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        number = len(quoted)
        while (name := f"_{number}".ljust(len(match[0]), "_")) in text or name in quoted:
            number += 1
        quoted[name] = match[1].replace("``", "`")
        return name

    return _QUOTED.sub(stand_in, text), quoted


def _numbers(table: pa.Table, name: str) -> FloatArray:
    column = table.column(name)
    if column.null_count:
        raise BadInputError(f"column {name!r} is null in {column.null_count} rows; drop or fill them first")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # NumPy may give an element of a strided array another last bit than of a contiguous one; the score must not differ.
    return np.ascontiguousarray(column.to_numpy(), np.float64)
