"""Whether there is memory for what comes next: a query that asks too much says so before the system ends a process of it.

What a step takes is known beforehand only roughly, so it is asked for in small steps: a task asks before it takes in each
batch of rows, before it combines what it has, and before it reads a partial. What is asked for is not set aside: two that
ask at once may both be told yes, which the spare memory is for.
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
"""The environment variable that says how many MiB are to be left free."""

FEWER_ROWS = (
    "let a batch have fewer rows (rows_per_trigger, maxFilesPerTrigger, maxOffsetsPerTrigger), take fewer tasks at once, or "
    "give the machine more memory"
)
SHORTER_WINDOW = "take a shorter window or fewer keys, or give the machine more memory"

_MIB = 1 << 20
_ASKED = 16 * _MIB
"""Bytes between two questions, of which each takes a tenth of a millisecond."""
_MOST_SPARE = 512 * _MIB
_SPARE_SHARE = 32


class Headroom:
    """Asks for the memory of one task, whose steps are small against what there is: not each of them needs a question."""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._unasked = 0

    def require(self, come: int, more: int, doing: str) -> None:
        """Raise MemoryLimitError if `more` bytes cannot be had; `come` is what has been taken since this was called last."""
        self._unasked += come
        if self._unasked + more >= _ASKED:
            self._unasked = 0
            require(more, doing, self._remedy)


def require(more: int, doing: str, remedy: str) -> None:
    """Raise MemoryLimitError, saying what is needed, what can be had and what to do, if `more` bytes would not leave the spare ones."""
    room, spare = room_bytes(), _spare()
    if room is None or more + spare <= room:
        return
    raise MemoryLimitError(
        f"not enough memory for {doing}: it takes about {size(more)} more, and {size(max(0, room - spare))} can be had of the "
        f"{size(memory_bytes())} that there are, as {size(spare)} stay free ({SPARE}): {remedy}"
    )


def for_windows(remedy: str) -> Callable[[int], None]:
    """Return what asks for the bytes that a window's step takes, before it is taken."""
    room = Headroom(remedy)
    return lambda more: room.require(0, more, "the rows of a window")


@contextmanager
def limited(doing: str, remedy: str) -> Iterator[None]:
    """Say in one sentence what was being done when memory was refused by the system, as it is where a process has a limit."""
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        room = room_bytes()
        left = "" if room is None else f", with {size(max(0, room))} left"
        raise MemoryLimitError(f"not enough memory for {doing}: the system refused it{left}: {remedy}") from error


@cache
def _spare() -> int:
    """Return the bytes to be left free: by the environment, or else a thirty-second of the memory, half a GiB at most."""
    told = os.environ.get(SPARE, "")
    return int(told) * _MIB if told.isdecimal() else min(memory_bytes() // _SPARE_SHARE, _MOST_SPARE)
