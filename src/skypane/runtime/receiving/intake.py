"""From many senders into one log: what they hand in while a sync is under way is synced together after it."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future, Task

from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.seen import Seen

log = logging.getLogger(__name__)


class Intake:
    """The way into the log of one input, on one event loop."""

    def __init__(self, log: SegmentLog, seen: Seen) -> None:
        self.log = log
        self.seen = seen
        self._waiting: list[tuple[bytes, Future[None]]] = []
        self._writer: Task[None] | None = None
        #: why the last lines could not be written, if they could not
        self._told = ""

    def put(self, lines: bytes) -> Future[None]:
        """Hand in whole lines, in order; what is returned is done when they are on disk for good.

        It has an OSError if they are not: nothing of them is in the log then.
        """
        if not lines.endswith(b"\n"):
            raise ValueError("a log holds whole lines, and these end within one")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((lines, done))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return done

    @property
    def idle(self) -> bool:
        """Whether nothing that was handed in is left to be written."""
        return self._writer is None

    async def close(self) -> None:
        """Write what was handed in, then let go of the log."""
        while self._writer is not None:
            await asyncio.wait({self._writer})
        self.log.close()

    async def _write(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                await self._write_group(group)
        finally:
            self._writer = None

    async def _write_group(self, group: list[tuple[bytes, Future[None]]]) -> None:
        lines = b"".join(lines for lines, _ in group)
        error: OSError | None = None
        try:
            await asyncio.to_thread(self.log.append, lines)
            self.seen.wrote(lines)
            self._told = ""
        except OSError as raised:
            error = raised
            self._tell(raised)
        for _, done in group:
            if done.cancelled():  # who handed it in has gone
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _tell(self, error: OSError) -> None:
        """Say why nothing is written, once: who sends tries again and again."""
        reason = f"cannot be written: {error.strerror or error}"
        if self._told != reason:
            log.warning("input %s: %s", self.seen.name, reason)
        self._told = reason
        self.seen.failed(reason)
