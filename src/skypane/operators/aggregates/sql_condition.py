"""The grammar of conditions that workers evaluate: comparisons in SQL, joined by AND, OR, NOT.

    condition    either [OR either ...]
    either       negated [AND negated ...]
    negated      NOT negated | ( condition ) | comparison
    comparison   column
                 column or literal = | == | <> | != | < | <= | > | >= column or literal, one of them a column
                 column IS [NOT] NULL
                 column [NOT] IN ( literal, ... )

Names of columns are plain, or in backticks. The settings of Spark decide how SQL reads other parts, which the grammar
leaves out: texts in double quotes, with a backslash, ${ or doubled quotes, reserved words as names, and identifiers
beyond ASCII. The grammar has no arithmetic: its types are Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import numpy as np

from skypane.operators.aggregates.condition_parts import Among, Column, Compared, IsNull, Joined, Literal, Negated, Part

_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:(?P<text>'(?:[^'\\$]|\$(?!\{))*')|(?P<quoted>`(?:[^`]|``)+`)|(?P<double>-?[ ]*(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+(?!\w))"""
    r"""|(?P<decimal>-?[ ]*(?:\d+\.\d*|\.\d+)(?!\w))|(?P<whole>-?[ ]*\d+(?![\w.]))|(?P<word>[A-Za-z_][A-Za-z_0-9]*(?![\w.]))"""
    r"""|(?P<mark><>|!=|<=(?!>)|>=|==|[=<>(),]))""",
    re.ASCII,
)
_COMPARISONS: Final = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST: Final = 100
_LARGEST: Final = Decimal(float(np.finfo(np.float64).max))
_DIGITS: Final = 38
"""The most digits of a decimal."""
_RESERVED: Final = frozenset(
    "ALL AND ANTI ANY AS AUTHORIZATION BETWEEN BOTH CASE CAST CHECK COLLATE COLUMN CONSTRAINT CREATE CROSS CURRENT_CATALOG"
    " CURRENT_DATABASE CURRENT_DATE CURRENT_PATH CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DISTINCT DIV"
    " ELSE END ESCAPE EXCEPT EXISTS EXTRACT FALSE FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP GROUPING__ID HAVING ILIKE IN"
    " INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEADING LEFT LIKE LOCALTIME LOCALTIMESTAMP MINUS NATURAL NOT NULL OFFSET"
    " ON ONLY OR ORDER OUTER OVERLAPS OVERLAY PRIMARY REFERENCES REGEXP RIGHT RLIKE SELECT SEMI SESSION_USER SOME"
    " SYSTEM_USER TABLE THEN TO TRAILING TRUE UNION UNIQUE UNKNOWN USER USING WHEN"
    " WHERE WITH WITHIN".split()
)  # fmt: skip


class NotInGrammarError(Exception):
    """Raised for a text that the grammar has not; its argument is where it ends to read it."""


def part_of(sql: str) -> Part:
    """Return the condition of a text; raise NotInGrammarError.

    >>> part_of("n >= 3 AND shop IS NULL")
    Joined(by_or=False, parts=(Compared(column='n', sign='>=', other=3), IsNull(column='shop')))
    """
    reader = _Reader(sql)
    tree = reader.condition(0)
    if reader.kind:
        raise NotInGrammarError(reader.rest)
    return tree


class _Reader:
    """Reads one token after the other: `kind` and `token` are of the next one, whose kind is "" at the end."""

    def __init__(self, sql: str) -> None:
        self._sql, self._end = sql.rstrip(" \t\r\n"), 0
        self.kind = self.token = ""
        self._next()

    @property
    def rest(self) -> str:
        return self.token + self._sql[self._end :]

    def condition(self, depth: int) -> Part:
        return self._joined("OR", depth)

    def _joined(self, word: str, depth: int) -> Part:
        parts = [self._part(word, depth)]
        while self._is(word):
            parts.append(self._part(word, depth))
        return Joined(word == "OR", tuple(parts)) if len(parts) > 1 else parts[0]

    def _part(self, word: str, depth: int) -> Part:
        return self._joined("AND", depth) if word == "OR" else self._negated(depth + 1)

    def _negated(self, depth: int) -> Part:
        if depth > _DEEPEST:
            raise NotInGrammarError(self.rest)
        if self._is("NOT"):
            return Negated(self._negated(depth + 1))
        if self._is("("):
            tree = self.condition(depth)
            self._require(")")
            return tree
        return self._comparison()

    def _comparison(self) -> Part:
        left = self._operand()
        if (sign := _COMPARISONS.get(self.token if self.kind == "mark" else "")) is not None:
            self._next()
            right = self._operand()
            if isinstance(left, Column):
                return Compared(left.name, sign, right)
            left, right, sign = right, left, _MIRRORED[sign]
            if isinstance(left, Column):
                return Compared(left.name, sign, right)
        if not isinstance(left, Column):
            raise NotInGrammarError(self.rest)
        return self._of_column(left)

    def _of_column(self, column: Column) -> Part:
        if self._is("IS"):
            negated = self._is("NOT")
            self._require("NULL")
            found: Part = IsNull(column.name)
        elif (negated := self._is("NOT")) or self._sees("IN"):
            self._require("IN")
            found = Among(column.name, tuple(self._listed()))
        else:
            return column
        return Negated(found) if negated else found

    def _listed(self) -> Iterator[Literal]:
        self._require("(")
        yield self._literal()
        while self._is(","):
            yield self._literal()
        self._require(")")

    def _operand(self) -> Column | Literal:
        if self.kind == "quoted":
            return Column(self._next()[1:-1].replace("``", "`"))
        if self.kind == "word" and self.token.upper() not in _RESERVED:
            return Column(self._next())
        return self._literal()

    def _literal(self) -> Literal:
        kind, rest = self.kind, self.rest
        if kind == "word" and self.token.upper() in {"TRUE", "FALSE"}:
            return self._next().upper() == "TRUE"
        if kind == "text":
            return self._next()[1:-1]
        if kind not in {"whole", "decimal", "double"}:
            raise NotInGrammarError(rest)
        number = self._next().replace(" ", "")
        if kind == "double" and abs(Decimal(number)) <= _LARGEST:
            return float(number)
        if (
            kind == "double"
            or sum(map(str.isdigit, number)) > _DIGITS
            or (kind == "whole" and not -(2**63) <= int(number) < 2**63)
        ):
            raise NotInGrammarError(rest)
        return int(number) if kind == "whole" else Decimal(number)

    def _sees(self, token: str) -> bool:
        return self.kind in {"word", "mark"} and self.token.upper() == token

    def _is(self, token: str) -> bool:
        """Skip the next token, and return True, if it is this one."""
        found = self._sees(token)
        if found:
            self._next()
        return found

    def _require(self, token: str) -> None:
        if not self._is(token):
            raise NotInGrammarError(self.rest)

    def _next(self) -> str:
        """Return the next token, and read the one after it."""
        token = self.token
        found = _TOKEN.match(self._sql, self._end)
        if found is None and self._end < len(self._sql):
            raise NotInGrammarError(self._sql[self._end :])
        self.kind, self.token = ("", "") if found is None else (found.lastgroup or "", found[0].strip(" \t\r\n"))
        self._end = len(self._sql) if found is None else found.end()
        return token
