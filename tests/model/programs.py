"""Programs that work on a disk: real code that is a function of what the disk answers.

What such a program does next is known from the answers so far: it is run again with those answers, up to the stroke after
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

from tests.model.disk import EMPTY, Disk, Operation
from tests.model.gate import Gate
from tests.model.remembering import Position, plain_frames, position, variables

Script: TypeAlias = Callable[[Gate], Hashable]
"""A program: works through a gate, and returns how it ended."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    outcome: Hashable


class _Paused(BaseException):
    """Ends a run: the rest is known, or is not needed."""


class Program:
    """A script, and what it does after each row of answers.

    Rows after which it remembers the same are one, and have one number; 0: before the first answer. What it remembers is
    what the variables of its `plain` functions held when the one of them that is at work called another, and the answers
    since; with `counts` also how many files it has opened and names it has drawn, so that none comes twice.
    """

    def __init__(self, script: Script, who: str, plain: Collection[str], *, counts: bool = False) -> None:
        self._script = script
        self._who = who
        self._plain = plain
        self._counts = counts
        self._rows: list[tuple[Any, ...]] = []
        self._next: list[Operation | Ended] = []
        self._entries: list[_Entry] = []
        self._known: dict[Hashable, int] = {}
        self._after: dict[tuple[int, Any], int] = {}
        self._run(_Run((), EMPTY, None, _Entry()))

    def __len__(self) -> int:
        return len(self._rows)

    def next(self, at: int) -> Operation | Ended:
        """Return the stroke after these answers, or how the program ends."""
        return self._next[at]

    def after(self, at: int, answer: Any, disk: Disk) -> int:
        """Return the number of these answers and one more; `disk`: as the stroke has left it."""
        if (at, answer) not in self._after:
            self._run(_Run((*self._rows[at], answer), disk, (at, answer), self._entries[at]))
        return self._after[at, answer]

    def _run(self, run: _Run) -> None:
        """Run again with these answers, and on from there on a disk of its own, since that is what may come next."""

        def perform(operation: Operation) -> Any:
            for answer in run.known:
                return run.heard(answer)
            run.come(plain_frames(self._plain))
            counts = (gate.opened, gate.drawn) if self._counts else ()
            at = self._number(run, operation, (run.remembered(operation), counts))
            run.disk, answer = operation.on(run.disk)
            run.key = at, answer
            if len(self._rows) == 1 or run.key in self._after:
                raise run.pause()
            return run.heard(answer)

        gate = Gate(perform, self._who)
        try:
            ended = Ended(self._script(gate))
        except _Paused:
            return
        self._number(run, ended, ended)

    def _number(self, run: _Run, step: Operation | Ended, remembered: Hashable) -> int:
        number = self._known.setdefault(remembered, len(self._rows))
        if number == len(self._rows):
            self._rows.append(tuple(run.answers))
            self._next.append(step)
            self._entries.append(run.entry)
        if run.key is not None:
            self._after[run.key] = number
        return number


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a program is among its plain functions, what their variables held when it came there, and after how many answers."""

    where: Position = ()
    variables: Hashable = ()
    since: int = 0


class _Run:
    """A run of a program: the first answers, then the disk that it goes on with, and what was heard last, and where."""

    def __init__(self, known: Collection[Any], disk: Disk, key: tuple[int, Any] | None, entry: _Entry) -> None:
        self.known = iter(known)
        self.disk = disk
        self.key = key
        self.entry = entry
        self.answers: list[Any] = []
        self._is_over = False

    def come(self, frames: list[FrameType]) -> None:
        """Note where the program is that requests a stroke."""
        if self._is_over:
            raise _Paused  # on the way out
        if (now := position(frames)) != self.entry.where:
            self.entry = _Entry(now, variables(frames), len(self.answers))

    def heard(self, answer: Any) -> Any:
        self.answers.append(answer)
        return answer

    def remembered(self, operation: Operation) -> Hashable:
        return self.entry.where, self.entry.variables, tuple(self.answers[self.entry.since :]), operation

    def pause(self) -> _Paused:
        self._is_over = True
        return _Paused()


def alone(script: Script, disk: Disk) -> tuple[Disk, Hashable]:
    """Run a program with nobody beside it; return the disk afterwards, and how it ended."""

    def perform(operation: Operation) -> Any:
        nonlocal disk
        disk, answer = operation.on(disk)
        return answer

    ended = script(Gate(perform, "alone"))
    return disk, ended


class Afterwards:
    """What a program makes of disks with nobody beside it, as `alone` says: what disks have in common is gone through once."""

    def __init__(self, script: Script, plain: Collection[str]) -> None:
        self._program = Program(script, "alone", plain, counts=True)
        self._known: dict[tuple[frozenset[tuple[str, Any]], int], tuple[Disk, Hashable]] = {}

    def of(self, disk: Disk) -> tuple[Disk, Hashable]:
        """Return the disk afterwards, and how the program ended."""
        at, passed = 0, []
        before: Disk | None = None
        while True:
            if disk != before:
                passed.append((frozenset(disk.items()), at))
                if passed[-1] in self._known:
                    ended = self._known[passed[-1]]
                    break
            step = self._program.next(at)
            if isinstance(step, Ended):
                ended = disk, step.outcome
                break
            before, (disk, answer) = disk, step.on(disk)
            at = self._program.after(at, answer, disk)
        self._known.update(dict.fromkeys(passed, ended))
        return ended
