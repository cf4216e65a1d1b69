"""The programs of `make bench`: which are run, with which arguments, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from measure.results.speed import QUOTED, TURNS

QUICK: Final = ("--quick",)


@dataclass(frozen=True, slots=True)
class Program:
    """A module of this package, and how it is called.

    arguments   those of a run whose figures are published
    quick       those of a run that takes seconds
    turns       how often it is run; README quotes ranges over the turns
    again       arguments of the turns after the first, which need only measure what is quoted
    """

    name: str
    module: str
    arguments: Sequence[str] = ()
    quick: Sequence[str] = QUICK
    turns: int = 1
    again: Sequence[str] = ()


KINDS: Final[Mapping[str, Sequence[str]]] = {"many_keys": ("batch", "stream", "native-stream")}
"""Arguments of which a program takes one, a run each."""
ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    # More keys and shorter slides take Spark's own windows hours.
    "aggregates": ("--keys", "16384", "--slides", "1 minute", "36 seconds"),
}
"""Arguments of published figures, where they are not those by default."""
AGAIN: Final[Mapping[str, Sequence[str]]] = {
    "streaming": ("--criteria", "4", "8", "--rows", "1000000"),
    "latency": ("--rates", "50000", "--criteria", "4"),
    "papers_cpp": ("--criteria", "4", "8"),
}
"""Arguments of further turns."""
LEFT_OUT: Final[Mapping[str, str]] = {
    "pace": "its table is on no page",
    "limits": "it takes hours, and its limits of memory need cgroups that only root has",
}
"""Programs that only `--only` runs, and why."""


def modules() -> list[str]:
    """Return the names of the modules here that have something to run."""
    return sorted(
        file.stem
        for file in Path(__file__).parent.glob("*.py")
        if file.stem != "__main__" and "\ndef main(" in file.read_text(encoding="utf-8")
    )


def every() -> list[Program]:
    """Return all programs, those that README quotes first."""
    found = []
    for module in modules():
        turns = TURNS if module in QUOTED else 1
        if module in KINDS:
            found += [Program(f"{module}-{kind}", module, (kind,), (kind, *QUICK), turns) for kind in KINDS[module]]
        else:
            found.append(Program(module, module, ARGUMENTS.get(module, ()), QUICK, turns, AGAIN.get(module, ())))
    return sorted(found, key=lambda program: -program.turns)


def chosen(names: Sequence[str], *, quick: bool = False) -> list[Program]:
    """Return the programs of these names; without names, all but those that are left out. A quick run has one turn of each.

    Raises KeyError for an unknown name.
    """
    known = {program.name: replace(program, turns=1) if quick else program for program in every()}
    if not names:
        return [program for name, program in known.items() if name not in LEFT_OUT]
    return [known[name] for name in names]


def schedule(programs: Sequence[Program]) -> list[tuple[Program, int]]:
    """Return each program with each of its turns: all first turns, then the others, so that turns of a program lie apart."""
    most = max((program.turns for program in programs), default=0)
    return [(program, turn) for turn in range(1, most + 1) for program in programs if turn <= program.turns]
