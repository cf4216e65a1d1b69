"""Calls to Java that another thread makes, so that the caller's wait can be cut short."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(call: Callable[[], T]) -> Future[T]:
    """Call in a thread that ends with the process; return the future of what it returns or raises.

    Py4J keeps a connection for each thread. An error that Ctrl-C raises amid a call would leave the answer of that call in
    the connection, to be taken for the answer of the next one.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=run, name="skypane background", daemon=True).start()
    return future
