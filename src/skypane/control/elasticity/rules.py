"""The twelve rules and the five terms of their outputs (paper 5, tables 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeAlias

from skypane.types import ConfigError

Speed: TypeAlias = Literal["fast", "acceptable", "slow"]
Splitting: TypeAlias = Literal["moderate", "intensive"]
Change: TypeAlias = Literal["decrease", "slight_decrease", "unchanged", "slight_increase", "increase"]

SPEEDS: tuple[Speed, ...] = ("fast", "acceptable", "slow")
SPLITTINGS: tuple[Splitting, ...] = ("moderate", "intensive")
CHANGES: tuple[Change, ...] = ("decrease", "slight_decrease", "unchanged", "slight_increase", "increase")


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors on the number of workers for each change, from half to one and a half."""

    decrease: float = 0.5
    slight_decrease: float = 0.75
    unchanged: float = 1.0
    slight_increase: float = 1.25
    increase: float = 1.5

    def __post_init__(self) -> None:
        values = [getattr(self, item.name) for item in fields(self)]
        if not values[0] > 0 or values != sorted(values):
            raise ConfigError(f"factors must be above 0 and ascend, got {self}")


class FuzzyRule(NamedTuple):
    """A rule: if the PLQ, its splitting (None: any) and the WLQ have these terms, change the stages as given."""

    plq: Speed
    splitting: Splitting | None
    wlq: Speed
    change_plq: Change
    change_wlq: Change


RULES: tuple[FuzzyRule, ...] = (
    FuzzyRule("fast", None, "fast", "decrease", "decrease"),
    FuzzyRule("fast", None, "acceptable", "decrease", "unchanged"),
    FuzzyRule("fast", None, "slow", "decrease", "increase"),
    FuzzyRule("acceptable", "moderate", "fast", "unchanged", "decrease"),
    FuzzyRule("acceptable", "moderate", "acceptable", "unchanged", "unchanged"),
    FuzzyRule("acceptable", "moderate", "slow", "unchanged", "increase"),
    FuzzyRule("acceptable", "intensive", "fast", "slight_increase", "decrease"),
    FuzzyRule("acceptable", "intensive", "acceptable", "slight_increase", "unchanged"),
    FuzzyRule("acceptable", "intensive", "slow", "unchanged", "increase"),
    FuzzyRule("slow", None, "fast", "increase", "slight_decrease"),
    FuzzyRule("slow", None, "acceptable", "increase", "slight_increase"),
    FuzzyRule("slow", None, "slow", "slight_increase", "increase"),
)
"""Table 2, in its order; rule numbers start at 1."""
