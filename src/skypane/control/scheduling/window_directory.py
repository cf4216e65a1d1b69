"""Window directory: the pending results of each open window, and whether an update of it is running."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from skypane.control.scheduling.events import Merge, PaneResult, WinUpdate
from skypane.control.scheduling.partitions import PartitionCount
from skypane.windows import Windows


@dataclass(slots=True)
class OpenWindow:
    """State of one window.

    missing   panes of the window that are not complete
    pending   pBuffer: waiting results, oldest first
    busy      whether an update of the window is running
    merging   number of running merges for the window, each of which will add a result
    """

    missing: set[int]
    pending: deque[int] = field(default_factory=deque)
    busy: bool = False
    merging: int = 0

    @property
    def updatable(self) -> bool:
        return not self.busy and bool(self.pending)


class WindowDirectory:
    """WD of paper 5: a window is added with its first result and removed by the task that finalises it."""

    def __init__(self, windows: Windows, first_pane: int | None) -> None:
        self._windows = windows
        self._first_pane = first_pane
        self._counts = PartitionCount()
        #: open windows, in ascending order
        self.open: dict[int, OpenWindow] = {}

    def add(self, event: PaneResult) -> list[int]:
        """Add a result to the buffers of its windows; return the windows, oldest first."""
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
        """Return an update task with the oldest pending result of a window, and mark the window as busy."""
        entry = self.open[window]
        result = entry.pending.popleft()
        entry.busy = True
        final = not entry.missing and not entry.pending and not entry.merging
        return WinUpdate(window, result, finalized=final)

    def merge(self, window: int) -> Merge:
        """Return a merge task with the two oldest pending results of a window."""
        entry = self.open[window]
        entry.merging += 1
        return Merge(window, entry.pending.popleft(), entry.pending.popleft())

    def updated(self, task: WinUpdate) -> None:
        """Record that an update has finished."""
        if task.finalized:
            del self.open[task.window]
            self._forget()
        else:
            self.open[task.window].busy = False

    def merged(self, task: Merge, result: int) -> None:
        """Record that a merge has finished with `result`."""
        entry = self.open[task.window]
        entry.merging -= 1
        entry.pending.append(result)

    def _forget(self) -> None:
        """Discard panes that no open or later window needs."""
        if self.open:
            self._counts.forget_below(self._windows.panes_of(min(self.open)).start)
