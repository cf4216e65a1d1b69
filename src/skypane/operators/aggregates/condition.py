"""Conditions on the rows of an aggregate, as text: "speed > 50 and kind in ('cab', 'bus')"; Arrow evaluates them.

They are SQL: columns (in backticks if the name is unusual), numbers, texts, comparisons (also IN, NOT IN, IS NULL),
+ - * /, AND, OR, NOT. Python's parser reads them, as they are or translated (sql_condition.py). Spark evaluates what it
cannot read, or would read otherwise than SQL, and a column of truth values stands for it. A comparison with null is neither
true nor false; an aggregate uses only the rows for which the condition is true. A division by zero is infinite.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.naming import shortened
from skypane.operators.aggregates.sql_condition import in_python
from skypane.preference.column import ColumnLike, quoted_column
from skypane.preference.column_checks import field_of
from skypane.types import BoolArray, ConfigError


def _is_nan(value: Any) -> Any:
    return pc.is_nan(value) if pa.types.is_floating(value.type) else pa.scalar(value=False)


def _alike(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function of operands of alike types: with a fraction as the other one, a number is a float64, as in Spark.

    Arrow converts so, too, but refuses integers beyond 2**53. It takes a date as midnight in UTC beside a time; in Spark it
    is midnight in the time zone of the session.
    """

    def computed(left: Any, right: Any) -> Any:
        if pa.types.is_date(left.type) != pa.types.is_date(right.type):
            raise pa.ArrowTypeError(f"{left.type} and {right.type} are not compared")
        if pa.types.is_floating(left.type) != pa.types.is_floating(right.type):
            left, right = _as_float(left), _as_float(right)
        return compute(left, right)

    return computed


def _as_float(value: Any) -> Any:
    numeric = pa.types.is_integer(value.type) or pa.types.is_decimal(value.type)
    return pc.cast(value, pa.float64(), safe=False) if numeric else value


def _greater(left: Any, right: Any) -> Any:
    return pc.or_kleene(pc.greater(left, right), pc.and_kleene(_is_nan(left), pc.invert(_is_nan(right))))


def _equal(left: Any, right: Any) -> Any:
    return pc.or_kleene(pc.equal(left, right), pc.and_kleene(_is_nan(left), _is_nan(right)))


#: comparisons as in Spark: NaN equals itself, and is larger than any other number
_COMPARE: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Lt: _alike(lambda left, right: _greater(right, left)),
    ast.LtE: _alike(lambda left, right: pc.invert(_greater(left, right))),
    ast.Gt: _alike(_greater),
    ast.GtE: _alike(lambda left, right: pc.invert(_greater(right, left))),
    ast.Eq: _alike(_equal),
    ast.NotEq: _alike(lambda left, right: pc.invert(_equal(left, right))),
}
_ARITHMETIC: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _alike(pc.add_checked),
    ast.Sub: _alike(pc.subtract_checked),
    ast.Mult: _alike(pc.multiply_checked),
    ast.Div: lambda left, right: pc.divide(*(pc.cast(one, pa.float64(), safe=False) for one in (left, right))),
}
_BOOLEAN: Mapping[type[ast.AST], Callable[..., Any]] = {ast.And: pc.and_kleene, ast.Or: pc.or_kleene}
_UNFIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError)
"""Arrow's errors for types on which it has no function."""
_TEXT_OR_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`([^`]+)`""")
"""A text constant, whose backticks are its own, or the name of a column in backticks, the group."""
_DEEPEST = 100
_ALLOWED = "write comparisons of columns, numbers and texts, joined by and, or, not"


@dataclass(frozen=True)
class Condition:
    """A condition on rows; the constructor raises ConfigError, naming the part that is not allowed."""

    text: str
    #: the argument that the user wrote, for errors
    argument: str = field(default="where", compare=False)

    def __post_init__(self) -> None:
        _check(self._tree, self._called, 0)

    @property
    def _called(self) -> str:
        return f"{self.argument}={shortened(self.text)!r}"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition uses, each once."""
        names = (node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        return tuple(dict.fromkeys(self._quoted.get(name, name) for name in names))

    @property
    def is_sql(self) -> bool:
        """Whether SQL reads the text in the same way: a < b < c is a comparison of (a < b) with c there.

        >>> Condition("n = 3 and shop in ('a', 'b')").is_sql, Condition("1 < n < 5").is_sql, Condition("n > 3 --2").is_sql
        (True, False, False)
        """
        chained = any(isinstance(node, ast.Compare) and len(node.ops) > 1 for node in ast.walk(self._tree))
        return self._translated is not None and not chained

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column or types, if the condition cannot be evaluated on rows of `schema`."""
        for column in self.columns:
            field_of(schema, column)
        try:
            kind = self._kind(schema)
        except _UNFIT as error:
            types = ", ".join(f"{name} is {schema.field(name).type}" for name in self.columns)
            raise ConfigError(f"{self._called} cannot be evaluated ({types}): {error}") from error
        if not pa.types.is_boolean(kind):
            raise ConfigError(f"{self._called} is of type {kind}, not boolean: compare it with a value")

    def fits(self, schema: pa.Schema) -> bool:
        """Return whether the columns of `schema` have types on which the condition can be evaluated."""
        try:
            self._kind(schema)
        except (KeyError, *_UNFIT):
            return False
        return True

    def _kind(self, schema: pa.Schema) -> pa.DataType:
        return self._value(self._tree, schema.empty_table()).type

    def holds(self, rows: pa.Table) -> BoolArray:
        """Return the mask of the rows for which the condition is true, shape (n,)."""
        value = self._value(self._tree, rows)
        if isinstance(value, pa.Scalar):
            return np.full(rows.num_rows, bool(value.as_py()))
        where: BoolArray = pc.fill_null(value, fill_value=False).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(where, np.bool_)

    @cached_property
    def _quoted(self) -> dict[str, str]:
        names = dict.fromkeys(filter(None, _TEXT_OR_QUOTED.findall(self.text)))
        return {f"_column_{number}": name for number, name in enumerate(names)}

    @cached_property
    def _tree(self) -> ast.expr:
        tree = self._translated or self._parsed(self.text)
        if tree is None:
            raise ConfigError(f"cannot read {self._called}: {_ALLOWED}")
        return tree

    @cached_property
    def _translated(self) -> ast.expr | None:
        translated = in_python(self.text)
        return None if translated is None else self._parsed(translated)

    def _parsed(self, text: str) -> ast.expr | None:
        placeholders = {name: placeholder for placeholder, name in self._quoted.items()}
        try:
            source = _TEXT_OR_QUOTED.sub(lambda match: placeholders.get(match[1], match[0]), text).strip()
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return None if _has_texts_side_by_side(source) else tree

    def _value(self, node: ast.expr, rows: pa.Table) -> Any:
        match node:
            case ast.Name(name):
                return rows.column(self._quoted.get(name, name))
            case ast.Constant(value):
                return pa.scalar(value)
            case ast.UnaryOp(op, operand):
                return self._unary(op, operand, rows)
            case ast.BinOp(left, op, right):
                return _ARITHMETIC[type(op)](self._value(left, rows), self._value(right, rows))
            case ast.BoolOp(op, values):
                return reduce(_BOOLEAN[type(op)], (self._value(value, rows) for value in values))
            case ast.Compare(left, ops, rights):
                return reduce(pc.and_kleene, self._comparisons(left, ops, rights, rows))
        raise AssertionError(f"unchecked node {node!r}")

    def _unary(self, op: ast.unaryop, operand: ast.expr, rows: pa.Table) -> Any:
        if isinstance(op, ast.Not):
            return pc.invert(self._value(operand, rows))
        if isinstance(operand, ast.Constant) and type(operand.value) in {int, float}:
            return pa.scalar(-operand.value)  # type: ignore[operator] # 2**63 fits into 64 bits only with its sign
        return pc.negate_checked(self._value(operand, rows))

    def _comparisons(
        self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr], rows: pa.Table
    ) -> Iterator[Any]:
        for op, right in zip(ops, rights, strict=True):
            value = self._value(left, rows)
            if isinstance(op, ast.In | ast.NotIn):
                yield _among(value, list(map(ast.literal_eval, right.elts)), isinstance(op, ast.NotIn))  # type: ignore[attr-defined]
            elif isinstance(op, ast.Is | ast.IsNot):
                yield pc.is_null(value) if isinstance(op, ast.Is) else pc.is_valid(value)
            else:
                yield _COMPARE[type(op)](value, self._value(right, rows))
            left = right

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text, "argument": self.argument}


def condition_of(condition: ColumnLike, argument: str) -> str:
    """Return the text of a condition that workers evaluate: the text itself, or the column of one that Spark computes."""
    if isinstance(condition, str):
        with suppress(ConfigError):
            if Condition(condition).is_sql:
                return condition
    return quoted_column(condition, argument)


def _among(value: Any, listed: list[Any], negated: bool) -> Any:
    """Return whether each value is in a list; null for null."""
    found = reduce(pc.or_kleene, (_alike(pc.equal)(value, pa.scalar(item)) for item in listed))
    return pc.invert(found) if negated else found


def _check(node: ast.expr, called: str, depth: int) -> None:
    match node:
        case ast.Constant(value) if isinstance(value, bool | int | float | str):
            inner: list[ast.expr] = []
        case ast.Name():
            inner = []
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            inner = [operand]
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            inner = [left, right]
        case ast.BoolOp(_, values):
            inner = values
        case ast.Compare(left, ops, rights) if _are_comparisons(ops):
            inner = [left, *rights]
        case ast.Compare(left, [*ops, op], [*rights, right]) if _are_comparisons(ops) and _is_list_or_none(op, right):
            inner = [left, *rights]
        case _:
            raise ConfigError(f"{called}: {ast.unparse(node)!r} is not allowed; {_ALLOWED}")
    if depth > _DEEPEST:
        raise ConfigError(f"{called}: operations are nested more than {_DEEPEST} deep")
    for part in inner:
        _check(part, called, depth + 1)


def _has_texts_side_by_side(source: str) -> bool:
    lines = iter(source.splitlines(keepends=True))
    kinds = (token.type for token in tokenize.generate_tokens(lambda: next(lines, "")))
    return any(one == other == tokenize.STRING for one, other in pairwise(kinds))


def _are_comparisons(ops: list[ast.cmpop]) -> bool:
    return all(type(op) in _COMPARE for op in ops)


def _is_list_or_none(op: ast.cmpop, right: ast.expr) -> bool:
    """Return whether the right operand is one that `in` or `is` allows: a list of constants, or None."""
    match op, right:
        case ast.In() | ast.NotIn(), ast.Tuple(items) | ast.List(items):
            return bool(items) and all(map(_is_constant, items))
        case ast.Is() | ast.IsNot(), ast.Constant(None):
            return True
    return False


def _is_constant(item: ast.expr) -> bool:
    match item:
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return type(value) in {int, float}
    return isinstance(item, ast.Constant)
