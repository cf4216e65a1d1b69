"""A bound on unwritten bytes; threads that bring more wait."""

from __future__ import annotations

import threading


class WriteBudget:
    """A budget of `most` bytes; a larger item is admitted when the budget is unused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Take `size` bytes; wait until they are available."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or self._taken + size <= self._most)
            self._taken += size

    def give(self, size: int) -> None:
        """Return `size` bytes to the budget."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()
