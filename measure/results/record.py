"""The record of benchmarks: tables and comparisons, the result of a program, and a run of many programs, as JSON.

Run       the programs of one command, on one machine and day: a file of measure/runs
Result    what one program has found, when, in how many seconds, and beside how much other work
Table     lines of a page, between two marks
Comparison   ways to do one thing, measured in turn: the seconds of each round of each way
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from measure.tables import markdown_table
from skypane.locations import whole


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of a page of docs/, between its marks `<!-- mark -->` and `<!-- /mark -->`."""

    page: str
    mark: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]

    @property
    def text(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.head, self.lines)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one round: by the clock, and of the CPUs of all its processes; None where these were not measured."""

    wall: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ways to do one thing, each measured in turn with the others on the same rows.

    subject   what is compared, such as "keyed windows of a stream"
    case      its parameters, such as "4 criteria"
    rows      rows that each way has processed, or of each way if they differ
    ours      the way with which the others are compared
    sides     the rounds of each way
    missing   ways that were not measured here, and why
    """

    subject: str
    case: str
    rows: int | Mapping[str, int]
    ours: str
    sides: Mapping[str, Sequence[Times]]
    missing: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        if self.ours not in self.sides:
            raise ValueError(f"{self.subject}, {self.case}: {self.ours!r} is not among the sides {list(self.sides)}")
        if empty := [side for side, rounds in self.sides.items() if not rounds]:
            raise ValueError(f"{self.subject}, {self.case}: no round of {', '.join(empty)}")

    def rows_of(self, side: str) -> int:
        """Return how many rows a way has processed in a round."""
        return self.rows if isinstance(self.rows, int) else self.rows[side]

    def rates(self, side: str) -> list[float]:
        """Return rows per second of each round."""
        return [self.rows_of(side) / times.wall for times in self.sides[side]]

    def rate(self, side: str) -> float:
        """Return the median of rows per second."""
        return statistics.median(self.rates(side))

    def wall(self, side: str) -> float:
        """Return the median of wall seconds."""
        return statistics.median(times.wall for times in self.sides[side])

    def cpu(self, side: str) -> float | None:
        """Return the median of CPU seconds, or None if they were not measured in each round."""
        found = [times.cpu for times in self.sides[side] if times.cpu is not None]
        return statistics.median(found) if len(found) == len(self.sides[side]) else None

    def ratio(self, side: str) -> float:
        """Return how many times as many rows per second ours processes; below 1 where the other way is faster."""
        return self.rate(self.ours) / self.rate(side)


Found = list[Table | Comparison]
"""The tables and comparisons that a program returns."""


@dataclass(frozen=True, slots=True)
class Result:
    """The tables and comparisons of one program, and how they were measured.

    turn      which repetition of the program in the run, from 1 on
    began     when it began, ISO 8601, UTC
    seconds   how long it took
    others    the share of the machine's CPU time that other processes had meanwhile
    steal     the share that other guests of the host had
    """

    name: str
    arguments: Sequence[str]
    turn: int
    began: str
    seconds: float
    others: float
    steal: float
    tables: Sequence[Table] = ()
    comparisons: Sequence[Comparison] = ()

    def with_found(self, found: Sequence[Table | Comparison]) -> Self:
        """Return this with what the program has returned."""
        tables = tuple(one for one in found if isinstance(one, Table))
        return replace(self, tables=tables, comparisons=tuple(one for one in found if isinstance(one, Comparison)))


@dataclass(frozen=True, slots=True)
class Run:
    """Programs that were run by one command.

    machine    processor, cores, memory and system
    versions   of Python, Java and packages
    began      when the first one began, ISO 8601, UTC
    quick      whether sizes were small: such a run is never written into docs/
    anyway     whether results beside other work are published, too, and so stated
    """

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    began: str
    quick: bool = False
    anyway: bool = False
    results: Sequence[Result] = ()

    @property
    def day(self) -> str:
        """The day in words, such as 27 November 2026."""
        began = datetime.fromisoformat(self.began)
        return f"{began.day} {began:%B %Y}"

    @property
    def stamp(self) -> str:
        """The line below a table: when, and on which machine."""
        machine = f"{self.machine['processor']}, {self.machine['cores']}"
        return f"*Measured on {self.day}: {machine}; skypane {self.versions['skypane']}.*"

    def added(self, result: Result) -> Self:
        """Return the run with one more result, which replaces the one of the same program and turn."""
        kept = [one for one in self.results if (one.name, one.turn) != (result.name, result.turn)]
        return replace(self, results=(*kept, result))

    def write(self, file: Path) -> None:
        """Write the file, all or nothing."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as draft:
            draft.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(file: Path) -> Run:
    """Return the run of a file; raise ValueError if it has none."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        return Run(**value | {"results": tuple(_result(one) for one in value["results"])})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a run of benchmarks that this version reads: {error!r}") from error


def every(folder: Path) -> dict[Path, Run]:
    """Return all runs of a folder by their files, oldest first."""
    found = {file: read(file) for file in folder.glob("*.json")}
    return dict(sorted(found.items(), key=lambda pair: pair[1].began))


def found_in(value: Sequence[Mapping[str, Any]]) -> Found:
    """Return tables and comparisons from their JSON."""
    return [_comparison(one) if "sides" in one else Table(**one) for one in value]


def to_json(found: Sequence[Table | Comparison]) -> list[dict[str, Any]]:
    """Return tables and comparisons as JSON."""
    return [asdict(one) for one in found]


def _result(value: Mapping[str, Any]) -> Result:
    tables = tuple(Table(**one) for one in value["tables"])
    comparisons = tuple(_comparison(one) for one in value["comparisons"])
    return Result(**{**value, "tables": tables, "comparisons": comparisons})


def _comparison(value: Mapping[str, Any]) -> Comparison:
    sides = {side: tuple(Times(**one) for one in rounds) for side, rounds in value["sides"].items()}
    return Comparison(**{**value, "sides": sides})
