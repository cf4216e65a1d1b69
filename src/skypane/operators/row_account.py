"""Where each row is that was read, in counts: by them an engine sees that it has lost none, and none is in two places.

    read = answered + late + quarantined + held + open

A row that may enter waits in one pane, until the first window that holds its pane is answered: answers count panes as
they close, not what a query makes of their rows. No row falls between two windows, as a slide is never longer than its
window. Each number comes from where the thing itself is: rows read from the tasks, rejected ones from the gate and the
policy, held ones from the policy, open ones from the panes that are there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, Self

from skypane.operators.entry.counts import PaneCount
from skypane.operators.entry.rejection import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.progress.future import Held
from skypane.types import CheckpointError, SkypaneError
from skypane.windows import Windows
from skypane.wording import count


@dataclass(frozen=True, slots=True)
class RowTotals:
    """Numbers of rows since the first start.

    read         all
    answered     those in a window that was answered, or of a continuous skyline those that the front has taken
    late         those that came after their pane was closed
    quarantined  those rejected for another reason
    held         those too far ahead of the rest to be believed yet
    open         those that wait for a window to be answered
    """

    read: int
    answered: int
    late: int
    quarantined: int
    held: int
    open: int

    def check(self) -> None:
        """Raise SkypaneError if a row is nowhere, or in two places."""
        known = self.answered + self.late + self.quarantined + self.held + self.open
        if known != self.read:
            what = "lost" if known < self.read else "counted twice"
            raise SkypaneError(
                f"{count(abs(self.read - known))} of {count(self.read)} rows read since the first start would be {what}: "
                f"{count(self.answered)} answered + {count(self.late)} late + {count(self.quarantined)} quarantined + "
                f"{count(self.held)} held + {count(self.open)} open = {count(known)}. The batch is neither delivered nor "
                f"committed. A progress policy of your own must give up whole panes that it has held, and say how many rows "
                f"they have; without one this is a defect of skypane: please report it with these numbers"
            )

    def to_json(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RowAccount:
    """Rows read, answered and rejected since the first start, and `waiting`: by pane, those in no answered window yet."""

    read: int = 0
    answered: int = 0
    late: int = 0
    quarantined: int = 0
    waiting: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, windows: Windows, held: Held) -> Self:
        """Return the account of a stream that was not counted from its start: what is held is all that is known of it."""
        return cls(read=held.rows, waiting={windows.pane_at(pane.start): pane.rows for pane in held.panes})

    def after(
        self,
        read: int,
        entered: Iterable[PaneCount],
        rejection: Rejection,
        given_up: Collection[int],
        due: Iterable[WindowTask[Any]],
    ) -> Self:
        """Return the account after a batch of `read` rows.

        entered    its rows that may enter, by pane; a pane may come more than once
        rejection  what was rejected with it, of earlier rows those of the panes `given_up`
        due        the windows that are answered
        """
        waiting = {pane: rows for pane, rows in self.waiting.items() if pane not in given_up}
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

    def totals(self, held: Held, panes: OpenPanes[Any]) -> RowTotals:
        """Return the numbers, given what the policy holds and the panes that are open."""
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
        return asdict(self) | {"waiting": {str(pane): rows for pane, rows in self.waiting.items()}}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the account whose snapshot() this is."""
        try:
            waiting = {int(pane): int(rows) for pane, rows in snapshot["waiting"].items()}
            return cls(**{**snapshot, "waiting": waiting})
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"the account of rows in the checkpoint cannot be read: {cause!r}") from cause


def _panes_of(due: Iterable[WindowTask[Any]], oldest: int) -> set[int]:
    """Return the panes of these windows from the `oldest` on: of a long window, those before have been answered."""
    return {pane for task in due for pane, _ in task.panes[bisect_left(task.panes, oldest, key=itemgetter(0)) :]}
