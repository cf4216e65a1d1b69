"""What was done to streams and what was found, counted by scenario, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.nature.schedule import KILLS


@dataclass
class Tally:
    """Counts of one scenario, and what went wrong, a sentence each."""

    #: by kind: what was done; the error of a driver that failed as it should
    done: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    streams: int = 0
    starts: int = 0
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    #: answers that are wrong, checkpoints refused forever, drivers that hang; and failures that nothing explains
    wrong: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.done[kind] for kind in KILLS)

    def add(self, other: Tally) -> None:
        self.done += other.done
        self.expected += other.expected
        self.streams += other.streams
        self.starts += other.starts
        self.batches += other.batches
        self.rows += other.rows
        self.seconds += other.seconds
        self.wrong += other.wrong
        self.unexplained += other.unexplained

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))  # asdict() takes a Counter's items for what it is to count

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Tally:
        return cls(**{**value, "done": Counter(value["done"]), "expected": Counter(value["expected"])})


COLUMNS = (
    "scenario",
    "kills",
    "streams",
    "starts",
    "batches",
    "rows",
    "refused bits",
    "wrong",
    "unexplained",
    "minutes",
)


def table(tallies: Mapping[str, Tally]) -> str:
    """Return two tables in Markdown: by scenario what came of it, and what was done."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    named = {**tallies, "all": total}
    rows = [[name, *map(str, _figures(tally))] for name, tally in named.items()]
    kinds = sorted(total.done, key=lambda kind: (kind not in KILLS, -total.done[kind]))
    done = [[name, *(str(tally.done[kind] or "") for kind in kinds)] for name, tally in named.items()]
    faults = [f"- {name}: {line}" for name, tally in tallies.items() for line in (*tally.wrong, *tally.unexplained)]
    return "\n\n".join([_markdown(COLUMNS, rows), _markdown(["scenario", *kinds], done), "\n".join(faults)])


def _figures(tally: Tally) -> list[object]:
    return [tally.kills, tally.streams, tally.starts, tally.batches, tally.rows, tally.expected["refused"],
            len(tally.wrong), len(tally.unexplained), f"{tally.seconds / 60:.1f}"]  # fmt: skip


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
