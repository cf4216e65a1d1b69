"""The window directory: for each open window, the results that wait for it and whether it is being updated."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from skypane.control.scheduling.messages import Merge, PaneResult, WinUpdate
from skypane.control.scheduling.partitions import PartitionCount
from skypane.windows import Windows


@dataclass(slots=True)
class OpenWindow:
    """One window.

    pending   pBuffer: results that wait, oldest first
    busy      an update of it is running
    merging   merges for it that are running: each will bring a result
    missing   its panes of which partitions have still to come
    """

    missing: set[int]
    pending: deque[int] = field(default_factory=deque)
    busy: bool = False
    merging: int = 0

    @property
    def updatable(self) -> bool:
        return not self.busy and bool(self.pending)


class WindowDirectory:
    """WD of paper 5: windows enter with their first result and leave with the task that finalizes them."""

    def __init__(self, windows: Windows, first_pane: int | None) -> None:
        self._windows = windows
        self._first_pane = first_pane
        self._counts = PartitionCount()
        #: by window, ascending: those of older panes come first unless panes overtake each other
        self.open: dict[int, OpenWindow] = {}

    def add(self, event: PaneResult) -> list[int]:
        """Put a result into the buffers of its windows; return them, oldest first."""
        complete = self._counts.received(event.pane, event.counter)
        windows = list(self._windows.windows_of(event.pane))
        for window in windows:
            if window not in self.open:
                self._open(window)
            entry = self.open[window]
            entry.pending.append(event.result)
            if complete:
                entry.missing.discard(event.pane)
        return windows

    def _open(self, window: int) -> None:
        first = self._first_pane
        panes = self._windows.panes_of(window)
        self.open[window] = OpenWindow(
            {pane for pane in panes if (first is None or pane >= first) and not self._counts.is_complete(pane)}
        )
        if len(self.open) > 1 and window < max(other for other in self.open if other != window):
            self.open = dict(sorted(self.open.items()))

    def update(self, window: int) -> WinUpdate:
        """Take the oldest pending result of a window that is not busy as a task; the window is busy from now on."""
        entry = self.open[window]
        result = entry.pending.popleft()
        entry.busy = True
        final = not entry.missing and not entry.pending and not entry.merging
        return WinUpdate(window, result, finalized=final)

    def merge(self, window: int) -> Merge:
        """Take the two oldest pending results of a window as a task."""
        entry = self.open[window]
        entry.merging += 1
        return Merge(window, entry.pending.popleft(), entry.pending.popleft())

    def updated(self, task: WinUpdate) -> None:
        """An update has run."""
        if task.finalized:
            del self.open[task.window]
            self._forget()
        else:
            self.open[task.window].busy = False

    def merged(self, task: Merge, result: int) -> None:
        """A merge has run and made `result`."""
        entry = self.open[task.window]
        entry.merging -= 1
        entry.pending.append(result)

    def _forget(self) -> None:
        """Forget panes that no window after the finalized ones can need."""
        if self.open:
            self._counts.forget_below(self._windows.panes_of(min(self.open)).start)
