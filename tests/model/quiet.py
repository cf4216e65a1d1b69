"""Which strokes may be taken at once, before any of the others'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tests.model.independence import ahead
from tests.model.numbers import Integers, Numbers
from tests.model.world import Strokes, World


class Quiet:
    """Finds the strokes that leave the disk as it is, and mind nothing that other programs may change from where they stand.

    It goes by what is known, when it is made, of what programs may change.
    """

    def __init__(self, world: World, strokes: Sequence[Strokes]) -> None:
        self._world = world
        self._ahead: Numbers[int] = Numbers([0])
        self._tables = [self._table(ahead(there.edges)) for there in strokes]
        self._minded = np.zeros((0, len(self._ahead)), np.bool_)

    def _table(self, known: dict[int, int]) -> Integers:
        table = np.zeros(max(known, default=0) + 2, np.int64)  # the last: of where no program was before
        for at, bits in known.items():
            table[at] = self._ahead.of(bits)
        return table

    def is_(self, index: int, looks: Integers, at: Sequence[Integers]) -> NDArray[np.bool_]:
        """Return in which states the stroke of a program, that goes by these looks, may be taken at once."""
        quiet, minded = looks >= 0, self._minds()
        for other, (table, where) in enumerate(zip(self._tables, at, strict=True)):
            if other != index:
                quiet &= ~minded[looks, table[where.clip(max=len(table) - 1)]]
        return quiet

    def _minds(self) -> NDArray[np.bool_]:
        """Return by look, and by what may be changed, whether the one minds any of the other."""
        new = map(self._world.minding, range(len(self._minded), self._world.looks))
        rows = [[bool(minding & self._ahead[there]) for there in range(len(self._ahead))] for minding in new]
        if rows:
            self._minded = np.concatenate([self._minded, np.array(rows, np.bool_)])
        return self._minded
