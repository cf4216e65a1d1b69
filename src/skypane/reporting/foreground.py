"""Run a query in the foreground until it ends or the user interrupts it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

from skypane import BatchMetrics, StreamHandle
from skypane.diagnosis.diagnose import stopped
from skypane.reporting.query_view import RECENT

log = logging.getLogger(__name__)

Drain: TypeAlias = bool | Literal["now"]
"""Whether a query is drained at its end; "now": also while rows wait to be read."""

#: seconds between polls of a running query
POLL = 0.2


def follow(
    start: Callable[[Callable[[BatchMetrics], None]], StreamHandle],
    *,
    on_batch: Callable[[BatchMetrics], None],
    started: Callable[[StreamHandle], None] = lambda _: None,
    ended: Callable[[StreamHandle], bool] = lambda _: False,
    seconds: float | None = None,
    drain: Drain = False,
) -> bool:
    """Run a query until it ends, `ended` returns True, `seconds` have passed, or Ctrl-C; return False after Ctrl-C.

    `start` starts it with a listener of its batches; then `started` is called with the handle.
    With `drain`, the windows that are open at the end are answered too, but not after Ctrl-C or a BrokenPipeError.
    Raise SkypaneError with the cause if the query fails, and BrokenPipeError, after a stop, if `on_batch` has raised it.
    """
    unread: list[BrokenPipeError] = []
    recent: deque[BatchMetrics] = deque(maxlen=RECENT)
    silent = None

    def listen(metrics: BatchMetrics) -> None:
        recent.append(metrics)
        try:
            on_batch(metrics)
        except BrokenPipeError as error:  # in a batch, which an error of the listener must not fail
            unread.append(error)

    handle = start(listen)
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    with handle.interruptible():
        try:
            started(handle)
            while not (unread or ended(handle)) and time.monotonic() < until:
                if handle.await_termination(POLL):
                    break
                before, silent = silent, stopped(tuple(recent), time.time())
                if silent is not None and before is None:
                    log.warning("%s", silent.line)
        finally:
            handle.stop()
        handle.await_termination()
        if drain and not (unread or handle.interrupted):
            handle.drain(now=drain == "now")
    if unread:
        raise unread[0]
    return not handle.interrupted
