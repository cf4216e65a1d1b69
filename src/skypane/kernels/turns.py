"""Processes that share a cache of compiled kernels compile each kernel once: the others wait for it, and load it.

Without this, the driver and each worker of a machine would compile the same kernels at the same time, and two processes
that add to the index of one kernel could lose one of the entries.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from typing import Final

LOCK_NAME: Final = "skypane.lock"
"""File in a folder of compiled kernels, of which each kernel has a byte; it is empty, and stays."""
PATIENCE: Final = 60.0
"""Seconds after which a process that waits for another one compiles by itself: the other one may be suspended."""
_LOOK: Final = 0.01


@contextmanager
def turn(folder: str, kernel: str, patience: float = PATIENCE) -> Iterator[None]:
    """Wait until no other process has its turn with the kernel in this folder; the turn ends with the block, or the process.

    Where files cannot be locked, nobody waits.
    """
    file, place = _lock_file(folder), _place(kernel)
    held = file is not None and _locked(file, place, patience)
    try:
        yield
    finally:
        if held and file is not None:
            with suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def _locked(file: int, place: int, patience: float) -> bool:
    """Wait for the lock of a byte; return whether it is held."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # another process has it
            time.sleep(_LOOK)
        except OSError:  # the file system has no locks
            return False
        else:
            return True
    return False


@cache
def _lock_file(folder: str) -> int | None:
    """Return the file of the locks, which this process never closes: that would end all its turns."""
    try:
        return os.open(f"{folder}/{LOCK_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def _place(kernel: str) -> int:
    return int.from_bytes(blake2b(kernel.encode(), digest_size=4).digest())
