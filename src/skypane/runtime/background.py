"""Calls in a background thread, so that callers can stop waiting and a stop does not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

LOOK = 0.5
"""Seconds after which a waiting thread looks for signals, at the latest."""


def in_background(call: Callable[[], T]) -> Future[T]:
    """Run `call` in a daemon thread; return a future of its result or exception."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled; callers can only stop waiting

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - the future raises it again
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=run, name="skypane background", daemon=True).start()
    return future


def awaited(future: Future[T]) -> T:
    """Wait until `future` is done; return its result, or raise its exception.

    The main thread runs the handlers of all signals, but only a signal that the system delivers to that thread ends its
    wait. One that another thread receives would wait for its handler as long as `future` takes.
    """
    while not wait_for([future], LOOK).done:
        pass
    return future.result()
