"""The twelve rules and the five terms that they lead to (paper 5, tables 1 and 2)."""

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
    """What each change multiplies the number of workers by: at most halved, at most half as many again."""

    decrease: float = 0.5
    slight_decrease: float = 0.75
    unchanged: float = 1.0
    slight_increase: float = 1.25
    increase: float = 1.5

    def __post_init__(self) -> None:
        values = [getattr(self, item.name) for item in fields(self)]
        if not values[0] > 0 or values != sorted(values):
            raise ConfigError(f"factors must be above 0 and ascend, got {self}")


class Rule(NamedTuple):
    """If the PLQ, its splitting (None: whatever it is) and the WLQ are so, then change both so."""

    plq: Speed
    splitting: Splitting | None
    wlq: Speed
    change_plq: Change
    change_wlq: Change


RULES: tuple[Rule, ...] = (
    Rule("fast", None, "fast", "decrease", "decrease"),
    Rule("fast", None, "acceptable", "decrease", "unchanged"),
    Rule("fast", None, "slow", "decrease", "increase"),
    Rule("acceptable", "moderate", "fast", "unchanged", "decrease"),
    Rule("acceptable", "moderate", "acceptable", "unchanged", "unchanged"),
    Rule("acceptable", "moderate", "slow", "unchanged", "increase"),
    Rule("acceptable", "intensive", "fast", "slight_increase", "decrease"),
    Rule("acceptable", "intensive", "acceptable", "slight_increase", "unchanged"),
    Rule("acceptable", "intensive", "slow", "unchanged", "increase"),
    Rule("slow", None, "fast", "increase", "slight_decrease"),
    Rule("slow", None, "acceptable", "increase", "slight_increase"),
    Rule("slow", None, "slow", "slight_increase", "increase"),
)
"""Table 2, in its order: the rules' numbers start at 1."""
