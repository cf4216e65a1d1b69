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
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))  # asdict() takes a Counter's items for what it is to count

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Tally:
        return cls(**{**value, "done": Counter(value["done"]), "expected": Counter(value["expected"])})


def table(tallies: Mapping[str, Tally]) -> str:
    """Return two tables in Markdown: by scenario what came of it, and what was done."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    named = {**tallies, "all": total}
    rows = [["scenario", *_figures(total)], *([name, *_figures(tally).values()] for name, tally in named.items())]
    kinds = sorted(total.done, key=lambda kind: (kind not in KILLS, -total.done[kind]))
    done = [[name, *(str(tally.done[kind] or "") for kind in kinds)] for name, tally in named.items()]
    faults = [f"- {name}: {line}" for name, tally in tallies.items() for line in (*tally.wrong, *tally.unexplained)]
    return "\n\n".join([_markdown(rows), _markdown([["scenario", *kinds], *done]), "\n".join(faults)])


def _figures(tally: Tally) -> dict[str, str]:
    """Return the figures of a line, by the names of their columns."""
    figures = {
        "kills": tally.kills, "streams": tally.streams, "starts": tally.starts, "batches": tally.batches,
        "rows": tally.rows, "refused bits": tally.expected["refused"], "wrong": len(tally.wrong),
        "unexplained": len(tally.unexplained), "minutes": f"{tally.seconds / 60:.1f}",
    }  # fmt: skip
    return {name: str(figure) for name, figure in figures.items()}


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *others])
