"""Group commit of many senders into one log: lines that arrive during a sync are synced together after it."""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio import Future, Task

from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.receiver_status import ReceivedInput

log = logging.getLogger(__name__)


class NamedTopic:
    """The intake of one of many topics in one log: a line is an object with the topic and the line."""

    def __init__(self, topic: str, intake: GroupCommit) -> None:
        self._topic = topic
        self._intake = intake
        self.seen = intake.seen

    def put(self, line: bytes) -> Future[None]:
        """Hand in a line, as GroupCommit.put()."""
        text = line.decode(errors="backslashreplace").rstrip("\n")
        return self._intake.put(json.dumps({"topic": self._topic, "line": text}).encode() + b"\n")


class GroupCommit:
    """The intake of one input's log, on one event loop."""

    def __init__(self, log: SegmentLog, seen: ReceivedInput) -> None:
        self.log = log
        self.seen = seen
        self._waiting: list[tuple[bytes, Future[None]]] = []
        self._writer: Task[None] | None = None
        #: why the last lines could not be written; empty if they were
        self._failure = ""

    def put(self, lines: bytes) -> Future[None]:
        """Hand in whole lines, in order; return a future that is done when they are durable.

        It raises OSError if they cannot be written: then none of them are in the log.
        """
        if not lines.endswith(b"\n"):
            raise ValueError("lines must end with a line end")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((lines, done))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return done

    @property
    def idle(self) -> bool:
        """Whether all lines that were handed in are written."""
        return self._writer is None

    async def close(self) -> None:
        """Write all lines that were handed in, then close the log."""
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
            self._failure = ""
        except OSError as raised:
            error = raised
            self._report(raised)
        for _, done in group:
            if done.cancelled():  # the sender no longer waits
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _report(self, error: OSError) -> None:
        """Log why nothing is written, once per reason, since senders retry."""
        reason = f"cannot be written: {error.strerror or error}"
        if self._failure != reason:
            log.warning("input %s: %s", self.seen.name, reason)
        self._failure = reason
        self.seen.failed(reason)
