"""The continuous skyline as a query: lift keeps the rows of a pane that can ever be on the front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skypane.operators.by_preference import ByPreference, one_per, take_rows
from skypane.operators.entry.entry_rules import times_of
from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import ADD, FrontOperator, NewPoints, check_window
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.preference import Columns, Preference
from skypane.preference.groups import group_codes
from skypane.types import FloatArray, IntArray, Length, Micros


class Stays(NamedTuple):
    """Rows of a front and the span [start, end) of each, (n,) each, by row; rows that never enter are left out."""

    rows: IntArray
    starts: IntArray
    ends: IntArray


@dataclass(frozen=True, init=False)
class ContinuousSkyline(ByPreference):
    """The front of the last `window` microseconds of `time`, as it changes (paper 4); one for each group.

    A partial has the rows whose stay on the front of the rows lifted so far is longer than zero. Rows that are left out
    make no difference to others: the rows that dominate such a row c, earlier or later, dominate all rows that c
    dominates, and bound their stays more tightly than c. combine is therefore associative, commutative and idempotent,
    and the rows kept of a table depend on the table alone.
    """

    time: str
    window: Micros

    def __init__(self, preference: Preference | str, time: str, window: Micros, by: Columns = ()) -> None:
        super().__init__(preference, by)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "window", check_window(window))
        self.preference.require_flat("continuous skylines")

    def lift(self, rows: pa.Table) -> pa.Table:
        return take_rows(rows, np.sort(self.stays(rows).rows))

    def times(self, rows: pa.Table) -> IntArray:
        """Return the event times of rows in microseconds, shape (n,)."""
        return times_of(rows.column(self.time))

    def stays(self, rows: pa.Table) -> Stays:
        """Return the span in which each row is on the front of its group, among these rows."""
        points = self.preference.points(rows).values
        return stays(points, self.times(rows), self.window, group_codes(rows, self.groups))

    def describe(self) -> dict[str, Any]:
        levels = self.preference.describe()["levels"]
        return {
            "query": "continuous_skyline",
            "levels": levels,
            "by": sorted(self.groups),
            "time": self.time,
            "window": self.window,
        }

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"skyline of {self.preference} over the last {Length(self.window).words}{one_per(self.by)}"


def stays(points: FloatArray, times: IntArray, window: Micros, groups: IntArray | None = None) -> Stays:
    """Return when each of the points (n, d), arriving at `times` in microseconds, is on the front of a sliding window.

    groups   a code for each point, (n,), if each group has its own front
    """
    front: FrontOperator = Front(points.shape[1], window)
    if groups is not None:
        front, groups = GroupedFronts(points.shape[1], window), np.unique(groups, return_inverse=True)[1]
    arrivals = NewPoints(points, times, np.arange(len(times)), groups)
    updates = front.step(arrivals, int(times.max(initial=0)) + window + 1)
    order = np.argsort(updates.rows, kind="stable")  # of one row, ADD comes before DEL
    enters = updates.actions[order] == ADD
    return Stays(updates.rows[order][enters], updates.times[order][enters], updates.times[order][~enters])
