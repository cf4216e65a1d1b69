"""Every order in which programs can take turns at a disk, each stopped for ever after each of its strokes.

A program is real code that is a function of what the disk tells it. So what it does next is known from what it was told so
far: it is run anew with those answers, up to the stroke after them. A state is the disk and what each program was told;
one that was seen before, by whatever way, is not gone into again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tests.model.disk import Content, Disk, Open, Operation
from tests.model.gate import Gate
from tests.model.remembering import Position, plain_frames, position, variables

Script: TypeAlias = Callable[[Gate], Hashable]
"""A program: works through a gate, and returns how it ended."""
Frozen: TypeAlias = frozenset[tuple[str, Content]]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    outcome: Hashable


class _Paused(BaseException):
    """Ends a run before the stroke that no answer is known to."""


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
        self._number(())

    def next(self, at: int) -> Operation | Ended:
        """Return the stroke after these answers, or how the program ends."""
        return self._next[at]

    def after(self, at: int, answer: Any) -> int:
        """Return the number of these answers and one more."""
        key = (at, answer)
        if key not in self._after:
            self._after[key] = self._number((*self._rows[at], answer))
        return self._after[key]

    def _number(self, answers: tuple[Any, ...]) -> int:
        step, remembered = self._run(answers)
        number = self._known.setdefault(remembered, len(self._rows))
        if number == len(self._rows):
            self._rows.append(answers)
            self._next.append(step)
        return number

    def _run(self, answers: tuple[Any, ...]) -> tuple[Operation | Ended, Hashable]:
        """Return what comes after these answers, and what is remembered of them."""
        known, stroke = iter(answers), None
        remembered: Hashable = None
        where: Position = ()
        since: list[Any] = []

        def perform(operation: Operation) -> Any:
            nonlocal stroke, remembered, where, since
            if stroke is not None:
                raise _Paused  # on the way out
            frames = plain_frames(self._plain)
            if (now := position(frames)) != where:
                where, since = now, []
            for answer in known:
                since.append(answer)
                return answer
            stroke, remembered = operation, (where, variables(frames), tuple(since), operation)
            raise _Paused

        try:
            ended = Ended(self._script(Gate(perform, self._who)))
        except _Paused:
            assert stroke is not None
            return stroke, remembered
        return ended, ended


class State(NamedTuple):
    """The disk, and how far each program has come."""

    disk: Frozen
    programs: tuple[int, ...]


def alone(script: Script, disk: Disk) -> tuple[Disk, Hashable]:
    """Run a program with nobody beside it; return the disk afterwards, and how it ended."""

    def perform(operation: Operation) -> Any:
        nonlocal disk
        disk, answer = operation.on(disk)
        return answer

    ended = script(Gate(perform, "alone"))
    return disk, ended


@dataclass
class Footprint:
    """What a program has looked at, and changed, in any order so far: names that come or go, and what is in files."""

    looked: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)

    def note(self, before: Disk, after: Disk) -> None:
        self.named |= before.keys() ^ after.keys()
        self.filled |= {path for path in before.keys() & after.keys() if before[path] != after[path]}

    def size(self) -> int:
        return len(self.looked) + len(self.named) + len(self.filled)


class Exploration:
    """All that programs can come to on a disk, when they take turns in any order; `watch` sees who changed it, from what to what.

    A stroke that nothing of the others can make a difference to, nor to the others, is taken at once and in no other order.
    Which they are shows while exploring: it begins anew as long as a program turns out to touch what it has not before.
    """

    def __init__(self, programs: Sequence[Program], disk: Disk, watch: Callable[[int, Disk, Disk], None]) -> None:
        self._programs = programs
        self._disk = disk
        self._watch = watch
        self._prints = [Footprint() for _ in programs]

    def states(self) -> Iterator[tuple[State, list[Hashable]]]:
        """Yield each state that can be, and how the programs that have ended in it have; some states come twice."""
        known = -1
        while known != (known := sum(there.size() for there in self._prints)):
            yield from self._once()

    def _once(self) -> Iterator[tuple[State, list[Hashable]]]:
        disks = _Numbers()
        waiting = [(disks.of(frozenset(self._disk.items())), *(0 for _ in self._programs))]
        seen = {_packed(waiting[0])}
        while waiting:
            number, *programs = waiting.pop()
            state = State(disks[number], tuple(programs))
            steps = [program.next(at) for program, at in zip(self._programs, programs, strict=True)]
            yield state, [step.outcome for step in steps if isinstance(step, Ended)]
            for disk, moved in self._after(state, steps):
                after = disks.of(disk), *moved
                if (packed := _packed(after)) not in seen:
                    seen.add(packed)
                    waiting.append(after)

    def walk(self, chance: random.Random) -> Iterator[tuple[State, list[Hashable]]]:
        """Yield the states of one order of turns, drawn by chance, to the end of all programs."""
        state = State(frozenset(self._disk.items()), (0,) * len(self._programs))
        while True:
            steps = [program.next(at) for program, at in zip(self._programs, state.programs, strict=True)]
            yield state, [step.outcome for step in steps if isinstance(step, Ended)]
            moves = [(index, step) for index, step in enumerate(steps) if isinstance(step, Operation)]
            if not moves:
                return
            state = self._moved(state, dict(state.disk), *chance.choice(moves))

    def _after(self, state: State, steps: Sequence[Operation | Ended]) -> Iterator[State]:
        disk = dict(state.disk)
        moves = [(index, step) for index, step in enumerate(steps) if isinstance(step, Operation)]
        alone = next((move for move in moves if self._quiet(*move, disk)), None)
        for move in [alone] if alone else moves:
            yield self._moved(state, disk, *move)

    def _moved(self, state: State, before: Disk, index: int, step: Operation) -> State:
        disk, answer = step.on(before)
        if disk is not before:
            self._watch(index, before, disk)
            self._prints[index].note(before, disk)
        if step.name == "read":
            self._prints[index].looked.add(step.arguments[0])
        at = self._programs[index].after(state.programs[index], answer)
        same = state.disk if disk is before else frozenset(disk.items())
        return State(same, (*state.programs[:index], at, *state.programs[index + 1 :]))

    def _quiet(self, index: int, step: Operation, disk: Disk) -> bool:
        others = [there for other, there in enumerate(self._prints) if other != index]
        path = step.arguments[0]
        match step.name:
            case "kind":
                return not any(path in there.named for there in others)
            case "make":
                return path in disk and not any(path in there.named for there in others)
            case "read":
                return not any(path in there.named or path in there.filled for there in others)
            case "names":
                return not any(
                    path == name.rpartition("/")[0] or path == name for there in others for name in there.named
                )
            case "fill":
                opened = [name for name, content in disk.items() if content == Open(path)]
                return not any(name in there.looked for there in others for name in opened)
        return False


class _Numbers:
    """Disks by number: there are few, in millions of states."""

    def __init__(self) -> None:
        self._disks: list[Frozen] = []
        self._numbers: dict[Frozen, int] = {}

    def of(self, disk: Frozen) -> int:
        if disk not in self._numbers:
            self._numbers[disk] = len(self._disks)
            self._disks.append(disk)
        return self._numbers[disk]

    def __getitem__(self, number: int) -> Frozen:
        return self._disks[number]


def _packed(numbers: Sequence[int]) -> int:
    """Return one small value for a few numbers."""
    packed = 0
    for number in numbers:
        packed = packed << 24 | number
    return packed
