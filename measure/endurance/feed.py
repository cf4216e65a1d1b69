"""The rows that the inputs of the endurance run send per second of event time."""

from __future__ import annotations

import json
import random
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SCHEMA = "id long, ts timestamp, sensor string, price double, rating double"
ROWS = 7
"""Rows of a second; a batch has twice as many at most."""
_SENT = 3
_START = datetime(2026, 1, 1, tzinfo=UTC)


class Feed:
    """Writes to two growing files and to a receiver, and waits until it has acknowledged."""

    def __init__(self, folder: Path, client: socket.socket) -> None:
        folder.mkdir(parents=True)
        self._files = [(folder / f"{name}.json").open("ab", buffering=0) for name in ("east", "west")]
        self._client, self._acknowledged = client, client.makefile("rb")
        self._chance = random.Random(7)
        self.steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()
        self._acknowledged.close()

    def step(self) -> None:
        """Bring the rows of a second."""
        said = [_line(self.steps, index, self._chance) for index in range(ROWS)]
        for file, one in zip(self._files, (said[:2], said[2:4]), strict=True):
            file.write(b"".join(one))
        self._client.sendall(b"".join(said[-_SENT:]))
        self.steps += 1
        while int(self._acknowledged.readline()) < self.steps * _SENT:
            pass

    @property
    def rows(self) -> int:
        """How many have been brought: each line is one, what is no row too."""
        return self.steps * ROWS


def _line(step: int, index: int, chance: random.Random) -> bytes:
    if index == 0 and step % 101 == 100:
        return b'{"id": 1, "ts": \n'
    time = _START + timedelta(seconds=step, milliseconds=chance.randrange(1_000))
    if index == 1 and step % 50 == 49:
        time -= timedelta(minutes=1)
    if index == 2 and step % 211 == 210:
        time += timedelta(days=365)
    row: dict[str, Any] = {
        "id": step * ROWS + index,
        "ts": None if index == 3 and step % 97 == 96 else time.isoformat(),
        "sensor": f"s{chance.randrange(4)}",
        "price": round(chance.random() * 100, 2),
        "rating": chance.randrange(50) / 10,
    }
    return json.dumps(row).encode() + b"\n"
