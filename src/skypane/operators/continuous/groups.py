"""One front per group of rows, which share a clock."""

from __future__ import annotations

import numpy as np

from skypane.operators.continuous.front import BEGIN, Arrivals, Front, Stored
from skypane.operators.continuous.updates import Updates, check_window
from skypane.types import IntArray, Micros


class GroupedFronts:
    """Fronts by group, a group being an integer that always means the same one; a group is forgotten once it is empty."""

    def __init__(self, d: int, window: Micros) -> None:
        self.d = d
        self.window = check_window(window)
        self.clock = BEGIN
        self._fronts: dict[int, Front] = {}

    def step(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), each of a group, (n,); return the updates of that span, as Front.step."""
        parts = [Updates.merged([_NOTHING])]
        order = np.argsort(groups, kind="stable")
        present, starts = np.unique(groups[order], return_index=True)
        arrived = dict(zip(present.tolist(), np.split(order, starts[1:]), strict=True)) if len(present) else {}
        for group in [*self._fronts, *(group for group in arrived if group not in self._fronts)]:
            front = self._fronts.get(group)
            if front is None:
                front = self._fronts[group] = self._new()
            at = arrived.get(group, _NO_ROWS)
            parts.append(front.step(arrivals.at(at), until))
            if not len(front):
                del self._fronts[group]
        self.clock = until
        return Updates.merged(parts)

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        return np.sort(np.concatenate([_NO_ROWS, *(front.current() for front in self._fronts.values())]))

    def snapshot(self) -> dict[int, Stored]:
        """Return what must be remembered from here on, by group; empty groups need nothing but the clock."""
        return {group: front.snapshot() for group, front in self._fronts.items()}

    @classmethod
    def restore(cls, stored: dict[int, Stored], d: int, window: Micros, clock: Micros) -> GroupedFronts:
        """Return fronts that go on where those that gave `stored` at `clock` were."""
        fronts = cls(d, window)
        fronts.clock = clock
        fronts._fronts = {group: Front.restore(value, window) for group, value in stored.items()}
        return fronts

    def _new(self) -> Front:
        front = Front(self.d, self.window)
        front.clock = self.clock
        return front


_NO_ROWS: IntArray = np.empty(0, np.int64)
_NOTHING = Updates(_NO_ROWS, np.empty(0, np.int8), _NO_ROWS)
