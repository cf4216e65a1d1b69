"""The rules of tests/prose/vocabulary.toml, and the texts that break one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from tests.prose.texts import Text

FILE: Final = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Rule:
    """A pattern that prose does not use, and the words to use instead."""

    find: str
    use: str
    why: str
    example: str
    #: whether tests follow the rule, too
    tests: bool = True

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, in which a space is any white space."""
        return re.compile(self.find.replace(" ", r"\s+"), re.IGNORECASE | re.MULTILINE)


class Allowed(NamedTuple):
    """A text that a rule finds and that is right."""

    file: str
    text: str
    reason: str


class Found(NamedTuple):
    """A place that breaks a rule."""

    file: str
    line: int
    words: str
    rule: Rule
    context: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words!r}: write {self.rule.use} ({self.rule.why}): {self.context}"


@dataclass(frozen=True)
class Vocabulary:
    """Rules, texts that are allowed, and rules for the names of tests alone."""

    rules: tuple[Rule, ...]
    allowed: tuple[Allowed, ...] = ()
    for_names: tuple[Rule, ...] = ()

    @classmethod
    def read(cls, file: Path = FILE) -> Vocabulary:
        """Return the vocabulary of a file."""
        read = tomllib.loads(file.read_text(encoding="utf-8"))
        allowed = tuple(Allowed(**each) for each in read.get("allow", ()))
        rules, for_names = (tuple(Rule(**each) for each in read[kind]) for kind in ("rule", "name"))
        return cls(rules, allowed, for_names)

    def matches(self, texts: Iterable[Text]) -> Iterator[Found]:
        """Yield the places of the texts that a rule finds."""
        for each in texts:
            for rule in self._rules(each):
                yield from (_found(each, rule, match) for match in rule.pattern.finditer(each.text))

    def _rules(self, text: Text) -> tuple[Rule, ...]:
        rules = tuple(rule for rule in self.rules if rule.tests or not text.file.startswith("tests/"))
        return rules + self.for_names if text.is_name else rules

    def findings(self, matches: Iterable[Found]) -> list[Found]:
        """Return the matches that break a rule: those that are not allowed."""
        return [found for found in matches if not any(_allows(one, found) for one in self.allowed)]

    def unused(self, matches: Iterable[Found]) -> list[Allowed]:
        """Return the allowances that no match needs."""
        found = list(matches)
        return [one for one in self.allowed if not any(_allows(one, each) for each in found)]


def _found(text: Text, rule: Rule, match: re.Match[str]) -> Found:
    line = text.line + text.text[: match.start()].count("\n") + match.group().startswith("\n")
    context = text.text[max(0, match.start() - 40) : match.end() + 40]
    return Found(text.file, line, _flat(match.group()), rule, _flat(context))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _allows(one: Allowed, found: Found) -> bool:
    return found.file == one.file and one.text in found.context
