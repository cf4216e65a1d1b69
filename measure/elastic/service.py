"""Work that waits: a query that calls a service for each row, and the service, which delays its answers.

On a machine with few cores, many workers share this work well. The delay of a remote service is simulated; sockets,
rows, tasks and executors are real.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

import skypane as sp
from skypane.operators.query import Query

SECONDS = 0.02
"""What an answer takes."""
_NUMBER = struct.Struct("!q")


@dataclass(frozen=True)
class Asked(Query):
    """The skyline of offers by price and rating, to whose price comes the fee that the service on `port` names."""

    port: int
    best: sp.Skyline = field(default_factory=lambda: sp.Skyline(sp.low("price") * sp.high("rating")))

    @property
    def required(self) -> Sequence[str]:
        return self.best.required

    def validate(self, schema: pa.Schema) -> None:
        self.best.validate(schema)

    def lift(self, rows: pa.Table) -> pa.Table:
        at, asked = rows.schema.get_field_index("price"), _connection(self.port)
        prices = [
            price + _fee(asked, number)
            for number, price in zip(rows["id"].to_pylist(), rows["price"].to_pylist(), strict=True)
        ]
        return self.best.lift(rows.set_column(at, "price", pa.array(prices, pa.float64())))

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self.best.combine(partials)

    def lower(self, partial: pa.Table) -> pa.Table:
        return self.best.lower(partial)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.best.output_schema(schema)

    def describe(self) -> dict[str, Any]:
        return {"query": "asked", "of": self.best.describe()}


@cache
def _connection(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def _fee(asked: socket.socket, number: int) -> int:
    asked.sendall(_NUMBER.pack(number))
    answer = asked.recv(_NUMBER.size, socket.MSG_WAITALL)
    return int(_NUMBER.unpack(answer)[0])


@contextmanager
def service() -> Iterator[int]:
    """Run the service as a process of its own; yield its port."""
    with subprocess.Popen([sys.executable, "-m", __spec__.name], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):  # the client has ended with its query
        while question := await reader.read(_NUMBER.size):
            await asyncio.sleep(SECONDS)
            writer.write(_NUMBER.pack(_NUMBER.unpack(question)[0] % 7))


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
