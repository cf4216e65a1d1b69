"""Receive lines over TCP, from clients that connect or from a server."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter, Task
from contextlib import suppress

from skypane.runtime.receiving.group_commit import GroupCommit
from skypane.runtime.receiving.input_list import Connect, Listen, address

LONGEST = 1 << 20
"""The longest line in bytes; a connection that sends a longer one is closed."""

_BLOCK = 1 << 18
_PATIENCE = 10.0
"""Seconds in which a connection must be established."""


async def listen(given: Listen, intake: GroupCommit) -> None:
    """Receive from every client that connects, until cancelled."""
    clients: set[Task[None]] = set()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - a coroutine runs in a task
        clients.add(own)
        try:
            # Only listen() cancels clients, when it ends; Python 3.11 prints a traceback for tasks cancelled like this.
            with suppress(asyncio.CancelledError):
                await _received(reader, writer, intake, acknowledge=given.acknowledge)
        except OSError as error:
            intake.seen.failed(f"a client's connection failed: {error}")
        finally:
            clients.discard(own)
            await _close(writer)

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


async def connect(given: Connect, intake: GroupCommit) -> None:
    """Receive from a server; raise OSError when the connection ends, so that the caller retries."""
    async with asyncio.timeout(_PATIENCE):
        reader, writer = await asyncio.open_connection(*address(given.connect, "connect"), ssl=given.context())
    try:
        intake.seen.answers()
        await _received(reader, writer, intake, acknowledge=False)
    finally:
        await _close(writer)
    raise ConnectionResetError(f"{given.connect} has closed the connection")


async def _received(reader: StreamReader, writer: StreamWriter, intake: GroupCommit, *, acknowledge: bool) -> None:
    """Hand in whole lines until the other side closes; an unfinished last line is dropped and counted."""
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
                raise ConnectionAbortedError(f"{len(rest):,} bytes without a line end exceed the limit of {LONGEST:,}")
    finally:
        intake.seen.unfinished += bool(rest)


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
