"""The panes that some window still needs, and the windows that a punctuation completes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Generic, Self, TypeVar

from skypane.types import Micros
from skypane.windows import Windows

P = TypeVar("P")
"""A partial, or a reference to one."""

MANY_PARTIALS = 16
"""Partials of an open pane from which they are merged ahead of its close: slow streams bring a few rows a batch."""


@dataclass(frozen=True, slots=True)
class WindowTask(Generic[P]):
    """One window to answer, and the partials of its panes, oldest pane first; panes without rows are absent."""

    window: int
    panes: tuple[tuple[int, tuple[P, ...]], ...]


@dataclass(frozen=True, slots=True)
class OpenPanes(Generic[P]):
    """Partials by pane, as a value: every step returns a new one.

    panes        the partials of each pane that an unanswered window holds
    next_window  every window before it is answered, or has no rows; None until a punctuation says so

    A window is answered once, in window order, when its last pane is closed. A window without rows is not
    answered, as Spark's own window() gives no row for it; so a gap of a year in the data costs nothing.
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

    def closed_by(self, punctuation: Micros | None) -> list[WindowTask[P]]:
        """Return the windows that `punctuation` completes, oldest first."""
        if punctuation is None:
            return []
        last = self._last_closed(punctuation)
        return [self._task(k) for k in takewhile(lambda k: k <= last, self._due())]

    def all_windows(self) -> list[WindowTask[P]]:
        """Return every window that holds a row and is not answered yet, oldest first: for rows that are all there."""
        return [self._task(k) for k in self._due()]

    def _due(self) -> Iterator[int]:
        """Yield the windows that hold a row and are not answered yet, oldest first."""
        following = self.next_window
        for pane in sorted(self.panes):
            holding = self.windows.windows_of(pane)
            first = holding.start if following is None else max(holding.start, following)
            yield from range(first, holding.stop)
            following = max(first, holding.stop)

    def _last_closed(self, punctuation: Micros) -> int:
        return (punctuation - self.windows.offset - self.windows.length) // self.windows.slide

    def _task(self, window: int) -> WindowTask[P]:
        panes = ((pane, self.panes[pane]) for pane in self.windows.panes_of(window) if pane in self.panes)
        return WindowTask(window, tuple(panes))

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
        kept = {
            pane: partials for pane, partials in self.panes.items() if self.windows.windows_of(pane)[-1] >= following
        }
        return replace(self, panes=kept, next_window=following)
