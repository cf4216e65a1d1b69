"""A job run to its end in the foreground, or to the end of a batch when the user has had enough."""

from __future__ import annotations

import time
from collections.abc import Callable

from skypane import BatchMetrics, Job, StreamHandle

#: seconds between looks at a running query
POLL = 0.2


def follow(
    job: Job,
    *,
    on_batch: Callable[[BatchMetrics], None],
    ended: Callable[[StreamHandle], bool] = lambda _: False,
    trigger: str | None = None,
    seconds: float | None = None,
    drain: bool = False,
) -> bool:
    """Run `job` until it ends by itself, `ended` says so, `seconds` have passed, or Ctrl-C; tell if it was not Ctrl-C.

    With `drain`, the windows that are open in the end are answered too; Ctrl-C leaves them open.
    Raise SkypaneError, with the cause, if the query fails.
    """
    handle = job.start(on_batch=on_batch, trigger=trigger)
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    with handle.interruptible():
        try:
            while not ended(handle) and time.monotonic() < until:
                if handle.await_termination(POLL):
                    break
        finally:
            handle.stop()
        handle.await_termination()
        if drain and not handle.interrupted:
            handle.drain()
    return not handle.interrupted
