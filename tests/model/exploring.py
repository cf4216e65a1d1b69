"""Every order in which programs can interleave at a disk, each stopped forever after any of its strokes.

A state is the disk and where each program stands; one that was seen before, by whatever way, is not gone into again. A
program that has stopped is one whose turn does not come any more: what the others then make of the disk are states too.

One stroke is taken at once and in no other order: one that leaves the disk as it is, and goes by nothing that the others may
change from where they stand. It gets the same answer whenever its turn comes, and no other program notices it. So whatever the
others can do before it, they can do after it, on the same disks, and what they do while its program has stopped is among
that. The others do not wait forever, since no program comes back to where it was. So no disk, no change of one and no end
is left out: only states that differ in who has looked already. A stroke that changes the disk is taken in every order.

What programs may change from where they stand shows while exploring. It is explored again as long as more turns out than was
known: in the last round, all that the others can do after a stroke that was taken at once was gone through, and was counted
with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tests.model.disk import Disk
from tests.model.numbers import Integers, Packing, Seen
from tests.model.programs import Program
from tests.model.quiet import Quiet
from tests.model.world import ENDED, Frozen, Strokes, World

Columns: TypeAlias = Sequence[Integers]
"""States: the disk, and where each program stands."""
Watch: TypeAlias = Callable[[int, Disk, Disk], None]
"""Sees each change: whose it is, and the disk before and after it."""

_AGAIN: Final = 0.9
_ORDERS: Final = 3_000


class Exploration:
    """All that programs can come to on a disk, when they interleave in any order.

    watch       sees each change of a disk that can be, some more than once
    everything  whether strokes that nothing depends on are taken in every order too
    """

    def __init__(self, programs: Sequence[Program], disk: Disk, watch: Watch, *, everything: bool = False) -> None:
        self._everything = everything
        self._world = World(disk)
        self._strokes = [Strokes(program, self._world, partial(watch, index)) for index, program in enumerate(programs)]
        self._packing = Packing(1 + len(programs))
        self._disks = np.zeros(0, np.int64)
        self.states = 0

    @property
    def disks(self) -> set[Frozen]:
        """What disks can be, once all states were gone through."""
        return set(map(self._world.frozen, self._disks.tolist()))

    def ends(self) -> Counter[tuple[Hashable, ...]]:
        """Go through all states; return how the programs end, and in how many states they end so."""
        self.drawn(_ORDERS, np.random.default_rng(1))  # shows most of what the programs do
        while True:
            known = self._known()
            ends = self._once()
            if known == self._known():
                return ends

    def drawn(self, orders: int, chance: np.random.Generator) -> Counter[tuple[Hashable, ...]]:
        """Go through orders that are drawn by chance, to the ends of all programs; return in how many they end how.

        Whose turn it was has the next one too, nine times in ten: so some sleep while others do much. What this shows of
        the programs need not show while all states are gone through.
        """
        ends: Counter[tuple[Hashable, ...]] = Counter()
        columns = [np.zeros(orders, np.int64) for _ in range(1 + len(self._strokes))]
        last = np.zeros(orders, np.int64)
        while len(last):
            moves = self._moves(columns)
            self._count(ends, columns, moves)
            going = np.array([made[:, 2] != ENDED for made in moves])
            wish = 1 - chance.random(going.shape)
            again = np.flatnonzero(chance.random(len(last)) < _AGAIN)
            wish[last[again], again] = 1
            whose = (going * wish).argmax(axis=0)
            turns = [(index, made, going[index] & (whose == index)) for index, made in enumerate(moves)]
            last = np.concatenate([whose[where] for _, _, where in turns])
            columns = [np.concatenate(parts) for parts in zip(*(_moved(columns, *turn) for turn in turns), strict=True)]
        return ends

    def _known(self) -> int:
        return sum(1 + made.bit_count() for strokes in self._strokes for made in strokes.edges.values())

    def _once(self) -> Counter[tuple[Hashable, ...]]:
        ends: Counter[tuple[Hashable, ...]] = Counter()
        quiet = Quiet(self._world, self._strokes)
        seen, disks, after = Seen(), Seen(), np.zeros(1, np.int64)
        while len(states := seen.add(after)):
            columns = self._packing.columns(states)
            disks.add(columns[0])
            moves = self._moves(columns)
            self._count(ends, columns, moves)
            turns = self._turns(quiet, columns, moves)
            after = np.concatenate([self._packing.pack(_moved(columns, *turn)) for turn in turns])
        self.states, self._disks = len(seen), disks.sorted()
        return ends

    def _moves(self, columns: Columns) -> list[Integers]:
        disk, *at = columns
        return [strokes.made(disk, where) for strokes, where in zip(self._strokes, at, strict=True)]

    def _turns(
        self, quiet: Quiet, columns: Columns, moves: Sequence[Integers]
    ) -> Iterator[tuple[int, Integers, NDArray[np.bool_]]]:
        """Yield whose turn it may be, what is made of it, and in which states."""
        rest = np.ones(len(columns[0]), np.bool_)
        if not self._everything:
            for index, made in enumerate(moves):
                alone = rest & quiet.is_(index, made[:, 2], columns[1:])
                rest &= ~alone
                yield index, made, alone
        for index, made in enumerate(moves):
            yield index, made, rest & (made[:, 2] != ENDED)

    def _count(self, ends: Counter[tuple[Hashable, ...]], columns: Columns, moves: Sequence[Integers]) -> None:
        over = np.logical_and.reduce([made[:, 2] == ENDED for made in moves])
        for row in np.stack([at[over] for at in columns[1:]], axis=1).tolist():
            ends[tuple(strokes.outcome(at) for strokes, at in zip(self._strokes, row, strict=True))] += 1


def _moved(columns: Columns, index: int, made: Integers, where: NDArray[np.bool_]) -> list[Integers]:
    """Return states with what the stroke of one program makes of them."""
    after = [column[where] for column in columns]
    after[0], after[1 + index] = made[where, 0], made[where, 1]
    return after
