"""Calls that another thread makes, so that the caller's wait can be cut short and no stop waits for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(call: Callable[[], T]) -> Future[T]:
    """Call in a thread that ends with the process; return the future of what it returns or raises."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on nobody can cancel it, only stop waiting

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=run, name="skypane background", daemon=True).start()
    return future
