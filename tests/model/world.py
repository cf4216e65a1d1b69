"""What programs make of disks, stroke by stroke: worked out once, and kept by number."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from tests.model.disk import Content, Disk, Operation
from tests.model.independence import NOTHING, Change, Look, changes, look
from tests.model.numbers import Integers, Numbers
from tests.model.programs import Ended, Program

Frozen: TypeAlias = frozenset[tuple[str, Content]]

CHANGES: Final = -1
ENDED: Final = -2
"""In place of the number of what a stroke goes by: it changes the disk; the program has ended."""


class Done(NamedTuple):
    """What an operation makes of a disk: the disk afterwards, the answer, what it goes by or CHANGES, a bit for each change."""

    disk: int
    answer: Any
    look: int
    bits: int


class World:
    """What is known by number: there are few disks, changes and looks in millions of states."""

    def __init__(self, disk: Disk) -> None:
        self._numbers: Numbers[Frozen] = Numbers()
        self._disks: list[Disk] = []
        self._done: dict[tuple[Operation, int], Done] = {}
        self._changes: Numbers[Change] = Numbers()
        self._looks: Numbers[Look] = Numbers([NOTHING])
        self._number(disk)

    @property
    def looks(self) -> int:
        """How many are known."""
        return len(self._looks)

    def disk(self, number: int) -> Disk:
        return self._disks[number]

    def frozen(self, number: int) -> Frozen:
        return self._numbers[number]

    def done(self, operation: Operation, number: int) -> Done:
        key = operation, number
        if key not in self._done:
            self._done[key] = self._do(operation, number)
        return self._done[key]

    def _do(self, operation: Operation, number: int) -> Done:
        before = self._disks[number]
        after, answer = operation.on(before)
        if after == before:
            return Done(number, answer, self._looks.of(look(operation, before)), 0)
        bits = sum(1 << self._changes.of(change) for change in changes(before, after))
        return Done(self._number(after), answer, CHANGES, bits)

    def _number(self, disk: Disk) -> int:
        number = self._numbers.of(frozenset(disk.items()))
        if number == len(self._disks):
            self._disks.append(disk)
        return number

    def minding(self, number: int) -> int:
        """Return a bit for each change that a look minds."""
        there = self._looks[number]
        return sum(1 << bit for bit in range(len(self._changes)) if there.minds(self._changes[bit]))


class Strokes:
    """The strokes of one program: what each makes of each disk that it finds.

    edges  from where to where the program went, with a bit for each change made on the way
    """

    def __init__(self, program: Program, world: World, watch: Callable[[Disk, Disk], None]) -> None:
        self._program = program
        self._world = world
        self._watch = watch
        self._watched: set[tuple[int, int]] = set()
        self._keys = np.full(1, -1, np.int64)
        self._made = np.zeros((1, 3), np.int64)
        self.edges: dict[tuple[int, int], int] = {}

    def outcome(self, at: int) -> Hashable:
        """Return how the program ended that stands there."""
        step = self._program.next(at)
        assert isinstance(step, Ended)
        return step.outcome

    def made(self, disk: Integers, at: Integers) -> Integers:
        """Return by row the disk and the place of the program after its next stroke, and what that goes by."""
        keys = disk << 32 | at
        rows = np.searchsorted(self._keys, keys)
        new = self._keys[rows.clip(max=len(self._keys) - 1)] != keys
        if not new.any():
            return self._made[rows]
        self._learn(np.unique(keys[new]))
        return self._made[np.searchsorted(self._keys, keys)]

    def _learn(self, keys: Integers) -> None:
        made = [self._make(key >> 32, key & 0xFFFFFFFF) for key in keys.tolist()]
        known = np.concatenate([self._keys, keys])
        order = np.argsort(known, kind="stable")
        self._keys, self._made = known[order], np.concatenate([self._made, np.array(made, np.int64)])[order]

    def _make(self, number: int, at: int) -> tuple[int, int, int]:
        step = self._program.next(at)
        if isinstance(step, Ended):
            return number, at, ENDED
        done = self._world.done(step, number)
        if done.look == CHANGES and (number, done.disk) not in self._watched:
            self._watched.add((number, done.disk))
            self._watch(self._world.disk(number), self._world.disk(done.disk))
        to = self._program.after(at, done.answer, self._world.disk(done.disk))
        self.edges[at, to] = self.edges.get((at, to), 0) | done.bits
        return done.disk, to, done.look
