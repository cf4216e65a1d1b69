"""Run the merge of a receiver's inputs beside them: it delays no input, and none of its failures stops them."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import Task
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skypane.runtime.receiving.merged_log import MergedLog

log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between steps while nothing is left to read."""
LONGEST_WAIT = 60.0
"""Longest wait in seconds before a failed merge is repeated; it doubles from one second on."""


class MergeTask:
    """Steps of a merge, each in another thread than the event loop's.

    ends  returns the durable end of each input's log
    """

    def __init__(self, merged: MergedLog, ends: Callable[[], Mapping[str, int]]) -> None:
        self._merged = merged
        self._ends = ends
        self._stopped = asyncio.Event()
        self._task: Task[None] | None = None
        self.status = merged.status

    @property
    def at(self) -> Mapping[str, int]:
        """Up to which offset each input's log is merged, by name."""
        return self._merged.at

    def start(self) -> None:
        """Begin to merge."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Merge what the logs have, as far as it need not wait, and close the merged log."""
        self._stopped.set()
        if self._task is not None:
            await self._task
        ends = self._ends()
        while await self._step(ends) and not self.status.reason:
            pass
        self._merged.close()

    async def _run(self) -> None:
        wait = 1.0
        while not self._stopped.is_set():
            more = await self._step(self._ends())
            if more and not self.status.reason:
                continue
            pause = min(wait, LONGEST_WAIT) if self.status.reason else LOOK
            wait = 2 * wait if self.status.reason else 1.0
            try:
                await asyncio.wait_for(self._stopped.wait(), pause)
            except TimeoutError:
                continue

    async def _step(self, ends: Mapping[str, int]) -> bool:
        """Take a step; return whether there is more to read."""
        try:
            if self.status.reason:
                await asyncio.to_thread(self._merged.again)
            more = await asyncio.to_thread(self._merged.step, ends, time.monotonic(), time.time_ns() // 1_000)
        except Exception as error:  # noqa: BLE001 - reported in the status; the inputs continue
            reason = f"cannot merge: {getattr(error, 'strerror', None) or error}"
            if reason != self.status.reason:
                log.warning("order by time: %s", reason)
            self.status = replace(self.status, reason=reason)
            return False
        self.status = self._merged.status
        return more
