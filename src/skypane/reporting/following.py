"""A job run to its end in the foreground, or to the end of a batch when the user has had enough.

Ctrl-C is taken between batches: the batch under way is finished and committed, then the query stops. Stopping in the
middle would be just as exact, as the engine replays what was not committed, but it loses that work and makes Spark
print what it cancelled. A second Ctrl-C does not wait.

PySpark's own answer to Ctrl-C, to cancel all jobs, is put aside while a job is followed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, current_thread, main_thread
from types import FrameType

from skypane import BatchMetrics, Job, StreamHandle

#: seconds between looks at a running query
POLL = 0.2
#: how long a batch may take to finish before the query is stopped in the middle of it, seconds
PATIENCE = 30.0


@dataclass
class _Gate:
    """Holds the engine after a batch, once a stop is wanted, until the query knows that it is stopped."""

    wanted: Event = field(default_factory=Event)
    resting: Event = field(default_factory=Event)
    interrupted: bool = False
    handle: StreamHandle | None = None

    def passed(self) -> None:
        """Called by the engine's thread after each batch."""
        if not self.wanted.is_set():
            return
        self.resting.set()
        until = time.monotonic() + PATIENCE
        while self.handle is not None and self.handle.query.isActive and time.monotonic() < until:
            time.sleep(0.01)

    def stop(self, handle: StreamHandle) -> None:
        """Stop `handle` where no batch is cut in two, if that can be waited for."""
        self.wanted.set()
        until = time.monotonic() + PATIENCE
        try:
            while handle.query.isActive and handle.query.status["isTriggerActive"] and time.monotonic() < until:
                if self.resting.wait(POLL):
                    break
        finally:
            handle.stop()

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Ask for a stop at the first Ctrl-C, raise KeyboardInterrupt at the second."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self.wanted.set()


def follow(
    job: Job,
    *,
    on_batch: Callable[[BatchMetrics], None],
    ended: Callable[[StreamHandle], bool] = lambda _: False,
    trigger: str | None = None,
    seconds: float | None = None,
) -> bool:
    """Run `job` until it ends by itself, `ended` says so, `seconds` have passed, or Ctrl-C; tell if it was not Ctrl-C.

    Raise SkypaneError, with the cause, if the query fails.
    """
    gate = _Gate()

    def batch(metrics: BatchMetrics) -> None:
        on_batch(metrics)
        gate.passed()

    with _interrupts(gate.interrupt):
        handle = gate.handle = job.start(on_batch=batch, trigger=trigger)
        until = time.monotonic() + seconds if seconds is not None else float("inf")
        try:
            while handle.query.isActive and not ended(handle) and time.monotonic() < until:
                if gate.wanted.wait(POLL):
                    break
        finally:
            if handle.query.isActive:
                gate.stop(handle)
        handle.await_termination()
    return not gate.interrupted


@contextmanager
def _interrupts(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let `handler` have Ctrl-C."""
    if current_thread() is not main_thread():
        yield  # only the main thread may handle signals, and only it gets them
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
