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
    what the variables of its `plain` functions hold, and the answers since the one of them that is at work called another.
    """

    def __init__(self, script: Script, who: str, plain: Collection[str]) -> None:
        self._script = script
        self._who = who
        self._plain = plain
        self._rows: list[tuple[Any, ...]] = []
        self._next: list[Operation | Ended] = []
        self._known: dict[Hashable, int] = {}
        self._after: dict[tuple[int, Any], int] = {}
        self._run(_Run((), EMPTY, None))

    def __len__(self) -> int:
        return len(self._rows)

    def next(self, at: int) -> Operation | Ended:
        """Return the stroke after these answers, or how the program ends."""
        return self._next[at]

    def after(self, at: int, answer: Any, disk: Disk) -> int:
        """Return the number of these answers and one more; `disk`: as the stroke has left it."""
        if (at, answer) not in self._after:
            self._run(_Run((*self._rows[at], answer), disk, (at, answer)))
        return self._after[at, answer]

    def _run(self, run: _Run) -> None:
        """Run again with these answers, and on from there on a disk of its own, since that is what may come next."""

        def perform(operation: Operation) -> Any:
            run.come(plain_frames(self._plain))
            for answer in run.known:
                return run.heard(answer)
            at = self._number(run, operation, run.remembered(operation))
            run.disk, answer = operation.on(run.disk)
            run.key = at, answer
            if len(self._rows) == 1 or run.key in self._after:
                raise run.pause()
            return run.heard(answer)

        try:
            ended = Ended(self._script(Gate(perform, self._who)))
        except _Paused:
            return
        self._number(run, ended, ended)

    def _number(self, run: _Run, step: Operation | Ended, remembered: Hashable) -> int:
        number = self._known.setdefault(remembered, len(self._rows))
        if number == len(self._rows):
            self._rows.append(tuple(run.answers))
            self._next.append(step)
        if run.key is not None:
            self._after[run.key] = number
        return number


class _Run:
    """A run of a program: the first answers, then the disk that it goes on with, and what was heard last, and where."""

    def __init__(self, known: Collection[Any], disk: Disk, key: tuple[int, Any] | None) -> None:
        self.known = iter(known)
        self.disk = disk
        self.key = key
        self.answers: list[Any] = []
        self._where: Position = ()
        self._since = 0
        self._frames: list[FrameType] = []
        self._is_over = False

    def come(self, frames: list[FrameType]) -> None:
        """Note where the program is that requests a stroke."""
        if self._is_over:
            raise _Paused  # on the way out
        self._frames = frames
        if (now := position(frames)) != self._where:
            self._where, self._since = now, len(self.answers)

    def heard(self, answer: Any) -> Any:
        self.answers.append(answer)
        return answer

    def remembered(self, operation: Operation) -> Hashable:
        return self._where, variables(self._frames), tuple(self.answers[self._since :]), operation

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
