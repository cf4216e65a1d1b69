"""Files of a front whose shards are elsewhere: its first points, the request of each step, the responses.

A worker keeps its shards in memory, with the number of the next step. A task whose worker has its shard at another
step, or does not have it, takes the requests that are missing from the files, so the place of a task changes no answer.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from measure.residence.one_trip import OneTripShard, Request, Response
from skypane.operators.fronts import FrontContents
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.types import Micros

_KEPT: Final[dict[tuple[str, int], tuple[int, OneTripShard]]] = {}
"""The shards of this process, by folder and number: the next step, and the shard."""


@dataclass(frozen=True)
class Journal:
    """A folder that the driver and all workers reach; `window` is the front's."""

    folder: str
    window: Micros

    def begin(self, shards: list[FrontContents]) -> None:
        """Write the first points of each shard."""
        for shard, stored in enumerate(shards):
            self._write(f"shard-{shard}", stored)

    def first(self, shard: int) -> FrontContents:
        """Return the first points of a shard."""
        stored: FrontContents = self._read(f"shard-{shard}")
        return stored

    def ask(self, request: Request) -> None:
        """Write a request for all shards."""
        self._write(f"request-{request.step}", request)

    def answer(self, shard: int, step: int) -> int:
        """Write the response of a shard in a step; return the number of steps that had to be repeated before."""
        known, front = _KEPT.pop((self.folder, shard), (0, None))
        if front is None or known > step:
            known, front = 0, OneTripShard.restore(self.first(shard), self.window)
        for number in range(known, step):
            front.answer(self._read(f"request-{number}"), shard)
        self._write(f"response-{step}-{shard}", front.answer(self._read(f"request-{step}"), shard))
        _KEPT[self.folder, shard] = step + 1, front
        keep_loaded(type(self))
        return step - known

    def response(self, shard: int, step: int) -> Response:
        """Return the response of a shard, which is written."""
        response: Response = self._read(f"response-{step}-{shard}")
        return response

    def _write(self, name: str, value: object) -> None:
        (Path(self.folder) / name).write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def _read(self, name: str) -> Any:
        return pickle.loads((Path(self.folder) / name).read_bytes())  # noqa: S301 - only this program writes there
