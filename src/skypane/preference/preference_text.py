"""The text form of a preference: read() parses it into a tree of plain values, write() returns the text.

    preference  =  product { "PRIOR TO" product }
    product     =  term { "," term }
    term        =  "(" preference ")"  |  column ( "MIN" | "MAX" | "DIFF" | "AROUND" target [ "TO" target ] )
    column      =  a name  |  an expression in SQL, such as price * 2 or upper(city), with an operator or parentheses

Keywords are case-insensitive. Columns may be quoted by ", ' or `, with the quote doubled inside. A target is a number
or a quoted ISO date or time. In an expression, commas and keywords are in parentheses or quotes, and quotes are those
of SQL: only backticks name a column. The comma binds tighter than PRIOR TO, as `*` binds tighter than `&`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from skypane.naming import backticked, shortened
from skypane.preference.criteria import Around, Component, Criterion, High, Level, Low, Target
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Diff:
    """Compare only rows that agree on `column`."""

    column: str


@dataclass(frozen=True, slots=True)
class Product:
    """Terms that count equally (Pareto)."""

    terms: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Terms that each count only among rows that the terms before rank equal (prioritised)."""

    terms: tuple[Tree, ...]


Tree: TypeAlias = "Criterion | Diff | Product | Chain"

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`)
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?!\w))
      | (?P<suffixed>[+-]?(?:\d+\.?\d*|\.\d+)\w+)
      | (?P<word>[^\W\d]\w*)
      | (?P<mark>[,()])
      | (?P<sign>[-+*/%|&<>=!.:~^\[\]])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_PLAIN = re.compile(r"[^\W\d]\w*")
_DEEPEST = 50
"""The deepest nesting of parentheses."""
_DIRECTIONS = frozenset({"MIN", "MAX", "DIFF", "AROUND"})
_KEYWORDS = _DIRECTIONS | {"TO", "PRIOR"}


def read(text: str) -> Tree:
    """Return the tree that `text` describes; raise ConfigError, naming the position in `text`, if it cannot be parsed.

    >>> read("price MIN, rating MAX")
    Product(terms=(low('price'), high('rating')))
    """
    reader = _Reader(text)
    tree = reader.preference()
    reader.expect_end()
    return tree


def write(levels: Iterable[Level], groups: Iterable[str]) -> str:
    """Return the text that read() parses into these levels, with the groups before the first level."""
    products = [[_component(c) for c in level] for level in levels] or [[]]
    products[0][:0] = [f"{_column(g)} DIFF" for g in groups]
    return " PRIOR TO ".join(", ".join(p) for p in products)


def _component(component: Component) -> str:
    terms = [_criterion(c) for c in component]
    return terms[0] if len(terms) == 1 else f"({' PRIOR TO '.join(terms)})"


def _criterion(criterion: Criterion) -> str:
    column = _column(criterion.column)
    match criterion:
        case Low():
            return f"{column} MIN"
        case High():
            return f"{column} MAX"
        case Around(_, lo, hi) if lo == hi:
            return f"{column} AROUND {_literal(lo)}"
        case Around(_, lo, hi):
            return f"{column} AROUND {_literal(lo)} TO {_literal(hi)}"


def _column(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS:
        return name
    return backticked(name)


def _literal(target: Target) -> str:
    return f"'{target.isoformat()}'" if isinstance(target, date) else str(target)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""

    @property
    def unquoted(self) -> str:
        if self.kind != "quoted":
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


class _Reader:
    """A recursive-descent parser of one text, with one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._scan())
        self._next = 0
        self._depth = 0

    def preference(self) -> Tree:
        terms = [self._product()]
        while self._accept("PRIOR"):
            self._expect("TO")
            terms.append(self._product())
        return terms[0] if len(terms) == 1 else Chain(tuple(terms))

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise self._error("a comma, PRIOR TO or the end")

    def _product(self) -> Tree:
        terms = [self._term()]
        while self._accept(","):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else Product(tuple(terms))

    def _term(self) -> Tree:
        column = self._expression()
        if column is None and self._accept("("):
            return self._inner()
        if column is None and self._peek().kind not in ("word", "quoted"):
            raise self._error("a column")
        column = self._take().unquoted if column is None else column
        if self._accept("MIN"):
            return Low(column)
        if self._accept("MAX"):
            return High(column)
        if self._accept("DIFF"):
            return Diff(column)
        if self._accept("AROUND"):
            return self._around(column)
        raise self._error(f"MIN, MAX, DIFF or AROUND after column {shortened(column)!r}")

    def _expression(self) -> str | None:
        """Take an expression, up to the keyword after it, and return its text; None, and take nothing, if there is none."""
        end = self._end_of_term()
        tokens = self._tokens[self._next : end]
        signed = (token.kind == "number" and token.text[0] in "+-" for token in tokens[1:])  # price-2 is price and -2
        if self._tokens[end].keyword not in _DIRECTIONS or not (
            any(signed) or any(token.text == "(" or token.kind == "sign" for token in tokens)
        ):
            return None
        self._next = end
        return self._text[tokens[0].at : self._tokens[end].at].strip()

    def _end_of_term(self) -> int:
        """Return the place of the first keyword, comma or unmatched parenthesis that is in no parentheses."""
        depth = 0
        for place in range(self._next, len(self._tokens) - 1):
            token = self._tokens[place]
            if token.kind == "mark":
                depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth < 0 or (depth == 0 and (token.text == "," or token.keyword in _KEYWORDS)):
                return place
        return len(self._tokens) - 1

    def _inner(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ConfigError(f"{self._called}: more than {_DEEPEST} nested parentheses; remove some")
        inner = self.preference()
        self._expect(")")
        self._depth -= 1
        return inner

    def _around(self, column: str) -> Around:
        lo = self._target()
        return Around(column, lo, self._target() if self._accept("TO") else lo)

    def _target(self) -> Target:
        token = self._peek()
        try:
            if token.kind == "number":
                return _number(self._take().text)
            if token.kind == "quoted":
                return _moment(self._take().unquoted)
        except ValueError:
            self._next -= 1
        raise self._error("a number, or a quoted ISO date or time,")

    def _scan(self) -> Iterable[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise ConfigError(f"{self._called}: cannot read character {at + 1}, {self._text[at]!r}")
            kind = str(match.lastgroup)
            yield _Token(kind, match[kind], match.start(kind))
            at = match.end()
        yield _Token("end", "the end", end)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _accept(self, what: str) -> bool:
        token = self._peek()
        accepted = token.keyword == what or (token.kind == "mark" and token.text == what)
        self._next += accepted
        return accepted

    def _expect(self, what: str) -> None:
        if not self._accept(what):
            raise self._error(what)

    def _error(self, wanted: str) -> ConfigError:
        token = self._peek()
        return ConfigError(
            f"{self._called}: expected {wanted} at character {token.at + 1}, got {shortened(token.text)}"
        )

    @property
    def _called(self) -> str:
        return f"preference {shortened(self._text)!r}"


def _number(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def _moment(text: str) -> date | datetime:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
