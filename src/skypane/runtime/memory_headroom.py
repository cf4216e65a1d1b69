"""Check for available memory before each step, so that a query fails with a message before the system kills a process.

The memory of a step is only an estimate, so checks are frequent: a task checks before it takes each batch of rows,
before it combines rows, and before it reads a partial. A check reserves nothing, and two tasks may both pass at once;
the spare memory absorbs this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from skypane.runtime.resources import memory_bytes, room_bytes
from skypane.types import MemoryLimitError
from skypane.wording import size

SPARE = "SKYPANE_SPARE_MEMORY"
"""The environment variable with the MiB that must stay free."""

FEWER_ROWS = (
    "use fewer rows per batch (rows_per_trigger, maxFilesPerTrigger, maxOffsetsPerTrigger), fewer tasks at once, or a "
    "machine with more memory"
)
SHORTER_WINDOW = "use a shorter window, fewer keys, or a machine with more memory"

_MIB = 1 << 20
_ASKED = 16 * _MIB
"""Bytes between two checks; a check takes 0.1 ms."""
_MOST_SPARE = 512 * _MIB
_SPARE_SHARE = 32


class Headroom:
    """Checks the memory of one task; its steps are small, so that not every step needs a check."""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._unasked = 0

    def require(self, come: int, more: int, doing: str) -> None:
        """Raise MemoryLimitError if `more` bytes are not available; `come` bytes were taken since the last call."""
        self._unasked += come
        if self._unasked + more >= _ASKED:
            self._unasked = 0
            require(more, doing, self._remedy)


def require(more: int, doing: str, remedy: str) -> None:
    """Raise MemoryLimitError, with the bytes needed and available, if `more` bytes would leave less than the spare."""
    room, spare = room_bytes(), _spare()
    if room is None or more + spare <= room:
        return
    raise MemoryLimitError(
        f"not enough memory for {doing}: it needs about {size(more)} more, but {size(max(0, room - spare))} of "
        f"{size(memory_bytes())} are available, since {size(spare)} stay free ({SPARE}); {remedy}"
    )


def for_windows(remedy: str) -> Callable[[int], None]:
    """Return a function that checks for the bytes of a window's step before the step."""
    room = Headroom(remedy)
    return lambda more: room.require(0, more, "the rows of a window")


@contextmanager
def limited(doing: str, remedy: str) -> Iterator[None]:
    """Turn a MemoryError, as in a process with a limit, into a MemoryLimitError that names the step and the remedy."""
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        room = room_bytes()
        left = "" if room is None else f", with {size(max(0, room))} left"
        raise MemoryLimitError(f"not enough memory for {doing}: the system refused it{left}; {remedy}") from error


@cache
def _spare() -> int:
    """Return the bytes that must stay free: from the environment, or 1/32 of the memory, at most half a GiB."""
    text = os.environ.get(SPARE, "")
    return int(text) * _MIB if text.isdecimal() else min(memory_bytes() // _SPARE_SHARE, _MOST_SPARE)
