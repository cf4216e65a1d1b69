"""A main thread that waits for another: signals are handled meanwhile, whichever thread the system delivers them to."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from skypane.runtime.background import awaited, in_background

LIMIT = 30


def waits(thread: threading.Thread) -> bool:
    """Whether a thread waits for an event or a lock of threading."""
    frame = sys._current_frames()[thread.ident or 0]
    return frame.f_code is threading.Condition.wait.__code__


def test_a_signal_that_another_thread_receives_is_handled_while_the_main_thread_waits():
    handled = threading.Event()

    def receive() -> bool:
        while not waits(threading.main_thread()):
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return handled.wait(LIMIT)

    before = signal.signal(signal.SIGINT, lambda *_: handled.set())
    try:
        assert awaited(in_background(receive))
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_awaited_raises_what_it_raises():
    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        awaited(in_background(fail))
