"""Row accounting: counts of all rows read, by which the engine detects rows that are lost or counted twice.

    read = answered + late + quarantined + held + open

A row that may enter waits in one pane until the first window that holds its pane is answered. Answered rows are counted
by pane as panes close, whatever the query returns for them. No row falls between two windows, as a slide is never
longer than its window. Each count is taken where the rows are: rows read from the tasks, rejected rows from the entry
rules and the progress policy, held rows from the policy, open rows from the open panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, Self

from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.progress.far_future import HeldPanes
from skypane.snapshots import fields_from_json, fields_to_json
from skypane.types import SkypaneError
from skypane.windows import Windows
from skypane.wording import count


@dataclass(frozen=True, slots=True)
class RowTotals:
    """Numbers of rows since the first start of the query.

    read         all rows
    answered     rows in an answered window, or, for a continuous skyline, rows that the front has taken
    late         rows that came after their pane was closed
    quarantined  rows rejected for another reason
    held         rows so far ahead of all others that they may be errors
    open         rows that wait for their window to be answered
    """

    read: int
    answered: int
    late: int
    quarantined: int
    held: int
    open: int

    def check(self) -> None:
        """Raise SkypaneError if a row is lost or counted twice."""
        known = self.answered + self.late + self.quarantined + self.held + self.open
        if known != self.read:
            what = "lost" if known < self.read else "counted twice"
            raise SkypaneError(
                f"{count(abs(self.read - known))} of {count(self.read)} rows read since the first start would be "
                f"{what}: {count(self.answered)} answered + {count(self.late)} late + {count(self.quarantined)} "
                f"quarantined + {count(self.held)} held + {count(self.open)} open = {count(known)}; the batch is not "
                f"delivered or committed. If you use your own progress policy, it must abandon whole held panes and "
                f"return their row counts; otherwise this is a bug in skypane: please report it with these numbers"
            )

    def to_json(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RowAccount:
    """Rows read, answered and rejected since the first start; `waiting`: rows in no answered window yet, by pane."""

    read: int = 0
    answered: int = 0
    late: int = 0
    quarantined: int = 0
    waiting: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, windows: Windows, held: HeldPanes) -> Self:
        """Return the account of a stream that was not counted from its start: only its held rows are known."""
        return cls(read=held.rows, waiting={windows.pane_at(pane.start): pane.rows for pane in held.panes})

    def after(
        self,
        read: int,
        entered: Iterable[PaneCount],
        rejection: Rejection,
        abandoned: Collection[int],
        due: Iterable[WindowTask[Any]],
    ) -> Self:
        """Return the account after a micro-batch of `read` rows.

        entered    its rows that may enter, by pane; a pane may occur more than once
        rejection  the rows rejected by this batch, including the earlier rows of the panes `abandoned`
        due        the windows that are answered
        """
        waiting = {pane: rows for pane, rows in self.waiting.items() if pane not in abandoned}
        for part in entered:
            waiting[part.pane] = waiting.get(part.pane, 0) + part.rows
        answered = waiting.keys() & _panes_of(due, min(waiting, default=0))
        return type(self)(
            read=self.read + read,
            answered=self.answered + sum(waiting[pane] for pane in answered),
            late=self.late + rejection.late_rows,
            quarantined=self.quarantined + sum(rejection.quarantined.values()),
            waiting={pane: rows for pane, rows in waiting.items() if pane not in answered},
        )

    def totals(self, held: HeldPanes, panes: OpenPanes[Any]) -> RowTotals:
        """Return the totals, given the panes that the policy holds and the open panes."""
        there = self.waiting.keys() & panes.panes.keys()
        ahead = {panes.windows.pane_at(pane.start): pane.rows for pane in held.panes}
        return RowTotals(
            self.read,
            self.answered,
            self.late,
            self.quarantined,
            held=sum(rows for pane, rows in ahead.items() if pane in there),
            open=sum(self.waiting[pane] for pane in there - ahead.keys()),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the account as a JSON value."""
        return fields_to_json(self)

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the account of a snapshot(); raise CheckpointError, naming the field, if the snapshot is invalid."""
        return fields_from_json(cls, snapshot)


def _panes_of(due: Iterable[WindowTask[Any]], oldest: int) -> set[int]:
    """Return the panes of these windows from `oldest` on; older panes of a long window have been answered already."""
    return {pane for task in due for pane, _ in task.panes[bisect_left(task.panes, oldest, key=itemgetter(0)) :]}
