"""Lines over TCP: from clients that connect to us, or from a server that we connect to."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter, Task
from contextlib import suppress

from skypane.runtime.receiving.inputs import Connect, Listen, address
from skypane.runtime.receiving.intake import Intake

LONGEST = 1 << 20
"""Bytes of a line: who sends more without an end does not send lines, and is hung up on."""

_BLOCK = 1 << 18
_PATIENCE = 10.0
"""Seconds that a connection may take to come about."""


async def listen(given: Listen, intake: Intake) -> None:
    """Receive from every client that connects, until cancelled."""
    clients: set[Task[None]] = set()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - a coroutine runs in a task
        clients.add(own)
        try:
            # listen() alone cancels a client, at its end; Python 3.11 prints a trace of a client's task that ends so.
            with suppress(asyncio.CancelledError):
                await _received(reader, writer, intake, acknowledge=given.acknowledge)
        except OSError as error:
            intake.seen.failed(f"a client's connection has ended: {error}")
        finally:
            clients.discard(own)
            await _hang_up(writer)

    host, port = address(given.listen, "listen")
    server = await asyncio.start_server(serve, host, port, reuse_address=True, ssl=given.context(server=True))
    try:
        await server.serve_forever()
    finally:
        server.close()
        for client in clients:
            client.cancel()
        if clients:
            await asyncio.wait(clients)


async def connect(given: Connect, intake: Intake) -> None:
    """Receive from a server until it hangs up: an OSError, so that it is tried again."""
    async with asyncio.timeout(_PATIENCE):
        reader, writer = await asyncio.open_connection(*address(given.connect, "connect"), ssl=given.context())
    try:
        intake.seen.answers()
        await _received(reader, writer, intake, acknowledge=False)
    finally:
        await _hang_up(writer)
    raise ConnectionResetError(f"{given.connect} has hung up")


async def _received(reader: StreamReader, writer: StreamWriter, intake: Intake, *, acknowledge: bool) -> None:
    """Hand in whole lines until the other side ends; a line that it has not ended is none."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    rest, lines = b"", 0
    try:
        while chunk := await reader.read(_BLOCK):
            block, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                await intake.put(block + end)
                lines += block.count(b"\n") + 1
                if acknowledge:
                    writer.write(b"%d\n" % lines)
                    await writer.drain()
            if len(rest) > LONGEST:
                raise ConnectionAbortedError(f"{len(rest):,} bytes without the end of a line are no lines")
    finally:
        intake.seen.unfinished += bool(rest)


async def _hang_up(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
