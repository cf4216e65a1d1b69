"""The rows of a stream, in steps, each with the fate that the promises give it: entered, late, or quarantined, and why.

Fates do not depend on how Spark cuts the stream into batches: rows are at most 90 s late, and the policy waits two minutes; those
that must be late are of long ago, and none of them comes before the stream has surely had its first batch.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from tests.chaos.naive import SCHEMA, SECOND, SLIDE, START, Row, unusable

DELAY: Final = "2 minutes"
DAY: Final = 86_400 * SECOND
CALM: Final = 12
"""Steps without rows of long ago or of years ahead: drivers that are killed before the first batch may leave it many steps."""
STRANGE: Final = 0.02
AHEAD: Final = 12
"""Rows of years ahead in a stream, at most: 16 would have a drain accept them."""


@dataclass(frozen=True)
class Habits:
    """What the rows of a stream are like; some of them are strange, in one way of these."""

    size: int = 24
    strange: tuple[str, ...] = ("timeless", "blank", "no number", "old", "ahead")
    #: Rows that are sent a second time, some steps later, in a hundred.
    again: int = 0
    #: After so many steps the stream pauses for a week; 0: never.
    pause: int = 0


class Steps:
    """Makes the steps of a stream, one by one, and remembers what must become of their rows."""

    def __init__(self, seed: int, habits: Habits) -> None:
        self._chance, self._habits = np.random.default_rng(seed), habits
        self._ahead = 0
        self.made = 0
        #: all rows in the order in which they come, with those that are sent again
        self.sent: list[Row] = []
        #: rows that must enter; ids of those that must be late, or quarantined for a reason
        self.entering: list[Row] = []
        self.rejected: Counter[tuple[int, str]] = Counter()

    @property
    def rows(self) -> int:
        """How many rows there are, without those that are sent again."""
        return self.made * self._habits.size

    def step(self) -> pa.Table:
        """Return the rows of the next step."""
        number, size, chance = self.made, self._habits.size, self._chance
        begin = START + number * SLIDE + (number // self._habits.pause * 7 * DAY if self._habits.pause else 0)
        times = begin + chance.integers(0, SLIDE, size) - np.minimum(chance.exponential(8 * SECOND, size), 90 * SECOND)
        rows: list[Row] = [
            {
                "id": number * size + at,
                "ts": int(time),
                "sensor": ["a", "b", "c", None][int(chance.integers(4))],
                "price": float(chance.integers(12)),
                "rating": float(chance.integers(12)),
                "weight": int(chance.integers(-3, 4)),
            }
            for at, time in enumerate(times)
        ]
        self.made += 1
        for row in rows:
            if self._chance.random() < STRANGE and self._habits.strange:
                self._bend(row, str(self._chance.choice(self._habits.strange)))
        for row in rows:
            self._judge(row, begin)
        sent = rows + self._again(rows)
        self.sent += sent
        return table(sent)

    def _bend(self, row: Row, how: str) -> None:
        is_calm = self.made <= CALM
        if how == "timeless":
            row["ts"] = None
        elif how in {"blank", "no number"}:
            row["price"] = None if how == "blank" else math.nan
        elif how == "old" and not is_calm:
            row["ts"] -= 400 * DAY
        elif how == "ahead" and not is_calm and self._ahead < AHEAD:
            self._ahead += 1
            row["ts"] += 5_000 * DAY

    def _judge(self, row: Row, begin: int) -> None:
        reason = fate(row, begin)
        if reason is None:
            self.entering.append(row)
        else:
            self.rejected[row["id"], reason] += 1

    def _again(self, rows: list[Row]) -> list[Row]:
        """Return some of the rows that have been sent, of this step and the last ones."""
        count = len(rows) * self._habits.again // 100
        sent = self.entering[-5 * len(rows) :]
        return [sent[int(at)] for at in self._chance.integers(0, len(sent), count)]


def fate(row: Row, begin: int) -> str | None:
    """Return why a row of the step that begins then may not enter; None if it enters."""
    if reason := unusable(row):
        return reason
    if row["ts"] > begin + DAY:
        return "future"
    return "late" if row["ts"] < begin - DAY else None


def table(rows: list[Row]) -> pa.Table:
    """Return rows, whose times are microseconds, as a table."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)
