"""Calls that may take their time, in threads that a stop does not wait for."""

from __future__ import annotations

import asyncio
import threading
from asyncio import Future
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def aside(call: Callable[[], T]) -> T:
    """Call in a daemon thread; return or raise what it does."""
    loop = asyncio.get_running_loop()
    done: Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, raised = None, None
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            raised = error
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(tell, result, raised)

    threading.Thread(target=run, name="skypane aside", daemon=True).start()
    return await done
