"""The panes that some window still needs, and the windows that a punctuation completes."""

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
"""From so many partials on, those of an open pane are merged before it closes: slow streams bring a few rows a batch."""


@dataclass(frozen=True, slots=True)
class WindowTask(Generic[P]):
    """One window to answer, and the partials of its panes, oldest pane first; panes without rows are absent."""

    window: int
    panes: tuple[tuple[int, tuple[P, ...]], ...]


@dataclass(frozen=True, slots=True)
class OpenPanes(Generic[P]):
    """Partials by pane, as a value: every step returns a new one.

    panes        the partials of each pane that an unanswered window holds
    next_window  every window before it is answered, or has no rows; None until the first is answered

    A window is answered once, in window order, when its last pane is closed. A window without rows is not
    answered, as Spark's own window() gives no row for it; so a gap of a year in the data costs nothing, and a
    window costs as much as it has panes with rows.
    """

    windows: Windows
    panes: dict[int, tuple[P, ...]]
    next_window: int | None = None

    @classmethod
    def empty(cls, windows: Windows) -> Self:
        return cls(windows, {})

    def add(self, partials: Iterable[tuple[int, P]]) -> Self:
        panes = dict(self.panes)
        for pane, partial in partials:
            panes[pane] = (*panes.get(pane, ()), partial)
        return replace(self, panes=panes)

    def without(self, panes: Collection[int]) -> Self:
        """Forget these panes: their rows are in no answer."""
        return (
            replace(self, panes={pane: kept for pane, kept in self.panes.items() if pane not in panes})
            if panes
            else self
        )

    @property
    def begin(self) -> Micros | None:
        """The start of the next window that may be answered; None until the first is."""
        return None if self.next_window is None else self.windows.bounds(self.next_window)[0]

    @property
    def end(self) -> Micros | None:
        """The end of the last window that holds a row: a punctuation there completes all; None if no pane is open."""
        return self.windows.bounds(self.windows.windows_of(max(self.panes))[-1])[1] if self.panes else None

    def closed_by(self, punctuation: Micros | None) -> list[WindowTask[P]]:
        """Return the windows that `punctuation` completes, oldest first."""
        if punctuation is None:
            return []
        last = self._last_closed(punctuation)
        return list(takewhile(lambda task: task.window <= last, self._due()))

    def empty_by(self, punctuation: Micros | None, due: Sequence[WindowTask[P]]) -> int:
        """Return how many windows without a row `punctuation` passes, after the first window that was answered.

        due  the windows that closed_by() returns for the same punctuation
        """
        first = due[0].window if self.next_window is None and due else self.next_window
        if punctuation is None or first is None:
            return 0
        return max(0, self._last_closed(punctuation) + 1 - first) - len(due)

    def all_windows(self) -> list[WindowTask[P]]:
        """Return every window that holds a row and is not answered yet, oldest first: for when all rows are there."""
        return list(self._due())

    def _due(self) -> Iterator[WindowTask[P]]:
        """Yield the windows that hold a row and are not answered yet, oldest first."""
        filled, following = sorted(self.panes), self.next_window
        for pane in filled:
            holding = self.windows.windows_of(pane)
            first = holding.start if following is None else max(holding.start, following)
            yield from (self._task(window, filled) for window in range(first, holding.stop))
            following = max(first, holding.stop)

    def _last_closed(self, punctuation: Micros) -> int:
        return (punctuation - self.windows.offset - self.windows.length) // self.windows.slide

    def _task(self, window: int, filled: list[int]) -> WindowTask[P]:
        """Return the task of a window; only panes with rows, `filled` in order, are looked at, however long it is."""
        span = self.windows.panes_of(window)
        inside = filled[bisect_left(filled, span.start) : bisect_left(filled, span.stop)]
        return WindowTask(window, tuple((pane, self.panes[pane]) for pane in inside))

    def scattered(self, punctuation: Micros | None) -> list[int]:
        """Return the panes whose partials should be merged for keeping: closed ones, and those with very many."""
        first_open = None if punctuation is None else self.windows.first_open(punctuation)
        return [
            pane
            for pane, partials in self.panes.items()
            if len(partials) >= MANY_PARTIALS or (len(partials) > 1 and first_open is not None and pane < first_open)
        ]

    def replace(self, merged: Iterable[tuple[int, P]]) -> Self:
        """Put one partial, the merger of all, in the place of each given pane's partials."""
        return replace(self, panes=self.panes | {pane: (partial,) for pane, partial in merged})

    def retire(self, punctuation: Micros | None) -> Self:
        """Forget the panes that no window after `punctuation` holds."""
        if punctuation is None:
            return self
        following = self._last_closed(punctuation) + 1
        if self.next_window is not None:
            following = max(following, self.next_window)
        elif all(self.windows.windows_of(pane)[0] >= following for pane in self.panes):
            return self
        kept = {
            pane: partials for pane, partials in self.panes.items() if self.windows.windows_of(pane)[-1] >= following
        }
        return replace(self, panes=kept, next_window=following)
