"""Reading a checkpoint while a driver commits batches to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from skypane.types import CheckpointError

T = TypeVar("T")

_TRIES: Final = 3
"""Attempts to read; a batch that is committed meanwhile removes files that the one before it needed."""


def undisturbed(read: Callable[[], T]) -> T:
    """Return what `read` returns in the first of _TRIES attempts that finds all files."""
    for _ in range(_TRIES - 1):
        try:
            return read()
        except (CheckpointError, FileNotFoundError):
            continue
    return read()
