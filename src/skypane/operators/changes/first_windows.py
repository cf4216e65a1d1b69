"""Where a query takes over from another one: each window of both is of one of them, by the time at which it begins."""

from __future__ import annotations

from collections.abc import Iterable

from skypane.types import Micros
from skypane.windows import Windows


def reached(windows: Windows, panes: Iterable[int], punctuation: Micros | None) -> Micros | None:
    """Return a time that all rows read so far are before, given the open panes that hold them; None without rows."""
    ends = [windows.pane_end(pane) for pane in panes]
    return max(ends if punctuation is None else [*ends, punctuation], default=None)


def first_from(windows: Windows, time: Micros) -> int:
    """Return the first window that begins at `time` or later, so that it holds no row before."""
    return -((windows.offset - time) // windows.slide)


def last_before(windows: Windows, time: Micros) -> int:
    """Return the last window that begins before `time`."""
    return first_from(windows, time) - 1
