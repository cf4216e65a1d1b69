"""Ctrl-C that waits until work is done that does not survive it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Hold the first Ctrl-C back until the block ends; a second one is not held.

    Numba needs it while it loads a kernel: it calls Python from within, and if that call raises, the process ends by
    SIGSEGV, or with a SystemError.
    """
    usual = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(usual):
        yield  # only the main thread gets signals, and only a handler in Python raises
        return
    came = []

    def hold(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, usual)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            signal.raise_signal(signal.SIGINT)
