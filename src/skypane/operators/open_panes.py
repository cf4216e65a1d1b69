"""The panes that unanswered windows need, and the windows that a punctuation completes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Generic, Self, TypeVar

from skypane.types import Micros
from skypane.windows import Windows

P = TypeVar("P")
"""A partial, or a reference to one."""

MANY_PARTIALS = 16
"""Number of partials from which those of an open pane are merged: slow streams bring a few rows per micro-batch."""


@dataclass(frozen=True, slots=True)
class WindowTask(Generic[P]):
    """A window to answer, and the partials of its panes, oldest pane first; panes without rows are left out.

    version   0 for the first answer of a window, n for the one that replaces version n - 1
    replaced  the version that it replaces, with the number of this one, if the answer is to be their difference
    early     whether the window is answered before its end
    """

    window: int
    panes: tuple[tuple[int, tuple[P, ...]], ...]
    version: int = 0
    replaced: WindowTask[P] | None = None
    early: bool = False


@dataclass(frozen=True, slots=True)
class OpenPanes(Generic[P]):
    """Partials by pane, as an immutable value: every step returns a new one.

    panes        the partials of each pane that an unanswered window holds
    next_window  all windows before it are answered or have no rows; None until the first window is answered
    stop         windows from it on are answered by another query; None: all windows are answered here

    A window is answered once, in window order, when its last pane is closed. A window without rows is not answered, as
    Spark's window() gives no row for it. A gap of a year in the data therefore costs nothing, and the cost of a window
    depends on its panes with rows only.
    """

    windows: Windows
    panes: dict[int, tuple[P, ...]]
    next_window: int | None = None
    stop: int | None = None

    @classmethod
    def empty(cls, windows: Windows, first: int | None = None, stop: int | None = None) -> Self:
        """Return no panes of the windows from `first` on and before `stop`; None: of any."""
        return cls(windows, {}, first, stop)

    def add(self, partials: Iterable[tuple[int, P]]) -> Self:
        panes = dict(self.panes)
        for pane, partial in partials:
            panes[pane] = (*panes.get(pane, ()), partial)
        return replace(self, panes=panes)

    def without(self, panes: Collection[int]) -> Self:
        """Remove these panes: their rows are in no answer."""
        return (
            replace(self, panes={pane: kept for pane, kept in self.panes.items() if pane not in panes})
            if panes
            else self
        )

    @property
    def begin(self) -> Micros | None:
        """The start of the next window that may be answered; None until the first window is answered."""
        return None if self.next_window is None else self.windows.bounds(self.next_window)[0]

    @property
    def end(self) -> Micros | None:
        """The end of the last window that holds a row, where a punctuation completes all; None if no pane is open."""
        if not self.panes:
            return None
        return self.windows.bounds(self._before_stop(self.windows.windows_of(max(self.panes))[-1]))[1]

    def closed_by(self, punctuation: Micros | None) -> list[WindowTask[P]]:
        """Return the windows that `punctuation` completes, oldest first."""
        if punctuation is None:
            return []
        last = self.windows.last_closed(punctuation)
        return list(takewhile(lambda task: task.window <= last, self._due()))

    def empty_by(self, punctuation: Micros | None, due: Sequence[WindowTask[P]]) -> int:
        """Return the number of windows without rows that `punctuation` passes, from the first answered window on.

        due  the windows that closed_by() returns for the same punctuation
        """
        first = due[0].window if self.next_window is None and due else self.next_window
        if punctuation is None or first is None:
            return 0
        return max(0, self._before_stop(self.windows.last_closed(punctuation)) + 1 - first) - len(due)

    def _before_stop(self, window: int) -> int:
        """Return the window, or the last one that is answered here if it is after that one."""
        return window if self.stop is None else min(window, self.stop - 1)

    def all_windows(self) -> list[WindowTask[P]]:
        """Return all unanswered windows that hold a row, oldest first; for use when all rows have been read."""
        return list(self._due())

    def _due(self) -> Iterator[WindowTask[P]]:
        """Yield the unanswered windows that hold a row, oldest first."""
        filled = sorted(self.panes)
        return (self._task(window, filled) for window in self.unanswered())

    def unanswered(self) -> Iterator[int]:
        """Yield the numbers of the unanswered windows that hold a row, oldest first."""
        following = self.next_window
        for pane in sorted(self.panes):
            holding = self.windows.windows_of(pane)
            first = holding.start if following is None else max(holding.start, following)
            stop = self._before_stop(holding.stop - 1) + 1
            yield from range(first, stop)
            following = max(first, stop)

    def tasks(self, windows: Iterable[int]) -> list[WindowTask[P]]:
        """Return the tasks of these windows, which may have been answered before."""
        filled = sorted(self.panes)
        return [self._task(window, filled) for window in windows]

    def _task(self, window: int, filled: list[int]) -> WindowTask[P]:
        """Return the task of a window; only the panes with rows, `filled` in order, are visited, however long it is."""
        span = self.windows.panes_of(window)
        inside = filled[bisect_left(filled, span.start) : bisect_left(filled, span.stop)]
        return WindowTask(window, tuple((pane, self.panes[pane]) for pane in inside))

    def scattered(self, punctuation: Micros | None) -> list[int]:
        """Return the panes whose partials should be merged: closed panes, and panes with very many partials."""
        first_open = None if punctuation is None else self.windows.first_open(punctuation)
        return [
            pane
            for pane, partials in self.panes.items()
            if len(partials) >= MANY_PARTIALS or (len(partials) > 1 and first_open is not None and pane < first_open)
        ]

    def replace(self, merged: Iterable[tuple[int, P]]) -> Self:
        """Replace the partials of each given pane by one partial, their combination."""
        return replace(self, panes=self.panes | {pane: (partial,) for pane, partial in merged})

    def retire(self, punctuation: Micros | None) -> Self:
        """Remove the panes that no window after `punctuation` holds."""
        if punctuation is None:
            return self
        following = self.windows.last_closed(punctuation) + 1
        if self.next_window is not None:
            following = max(following, self.next_window)
        elif all(self.windows.windows_of(pane)[0] >= following for pane in self.panes):
            return self
        kept = {
            pane: partials
            for pane, partials in self.panes.items()
            if self._before_stop(self.windows.windows_of(pane)[-1]) >= following
        }
        return replace(self, panes=kept, next_window=following)
