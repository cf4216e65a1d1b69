"""How much may wait to be written: whoever brings more waits, in a thread of his own."""

from __future__ import annotations

import threading


class Room:
    """Room for so many bytes; something larger comes in when nothing else is there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Wait until there is room."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or self._taken + size <= self._most)
            self._taken += size

    def give(self, size: int) -> None:
        """Make room again."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()
