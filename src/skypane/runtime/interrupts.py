"""Delay Ctrl-C until work that cannot be interrupted is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Delay the first Ctrl-C until the block ends; a second one takes effect at once.

    Numba needs this while a kernel is loaded or called: it calls back into Python, also to return arrays, and if that call
    raises, the process ends with SIGSEGV or a SystemError. Spark's start of a query needs it: a call that is cut returns no handle of what runs then.
    """
    usual = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(usual):
        yield  # only the main thread receives signals, and only a Python handler raises
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
