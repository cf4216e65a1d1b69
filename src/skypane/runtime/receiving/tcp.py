"""Receive lines over TCP, from clients that connect or from a server."""

from __future__ import annotations

import asyncio
import logging
import socket
from asyncio import StreamReader, StreamWriter, Task
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from skypane.runtime.receiving.group_commit import GroupCommit
from skypane.runtime.receiving.input_list import Connect, Listen, address

log = logging.getLogger(__name__)

LONGEST = 1 << 20
"""The longest line in bytes; a connection that sends a longer one is closed."""

_BLOCK = 1 << 18
_PATIENCE = 10.0
"""Seconds in which a connection must be established."""


class _Clients:
    """The clients of a port, at most so many: one more takes the place of the one that has been silent for longest."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._known: OrderedDict[Task[None], None] = OrderedDict()
        self._reported = False

    def add(self, client: Task[None]) -> None:
        if len(self._known) >= self._most:
            self._known.popitem(last=False)[0].cancel()
            if not self._reported:
                self._reported = True
                log.warning("input %s: there are more than %d clients, and those that have been silent for longest are closed; "
                            "raise most_clients, or the limit of open files", self._name, self._most)  # fmt: skip
        self._known[client] = None

    def heard(self, client: Task[None]) -> None:
        """Record that a client has sent something."""
        if client in self._known:
            self._known.move_to_end(client)

    def discard(self, client: Task[None]) -> None:
        self._known.pop(client, None)

    async def ended(self) -> None:
        """Close all."""
        if clients := [*self._known]:
            for client in clients:
                client.cancel()
            await asyncio.wait(clients)


async def listen(given: Listen, intake: GroupCommit, most: int) -> None:
    """Receive from the clients that connect, at most so many at once, until cancelled."""
    clients = _Clients(given.name, most)

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - a coroutine runs in a task
        clients.add(own)
        try:
            # Python 3.11 prints a traceback for tasks that are cancelled without this.
            with suppress(asyncio.CancelledError):
                await _received(reader, writer, intake, partial(clients.heard, own), acknowledge=given.acknowledge)
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
        await clients.ended()


async def connect(given: Connect, intake: GroupCommit) -> None:
    """Receive from a server; raise OSError when the connection ends, so that the caller retries."""
    async with asyncio.timeout(_PATIENCE):
        reader, writer = await asyncio.open_connection(*address(given.connect, "connect"), ssl=given.context())
    try:
        intake.seen.answers()
        await _received(reader, writer, intake, lambda: None, acknowledge=False)
    finally:
        await _close(writer)
    raise ConnectionResetError(f"{given.connect} has closed the connection")


async def _received(
    reader: StreamReader, writer: StreamWriter, intake: GroupCommit, heard: Callable[[], None], *, acknowledge: bool
) -> None:
    """Hand in whole lines until the other side closes; an unfinished last line is dropped and counted.

    heard   is called when something has come
    """
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    rest, lines = bytearray(), 0
    try:
        while chunk := await reader.read(_BLOCK):
            heard()
            end = chunk.rfind(b"\n") + 1
            if end:
                block, rest = bytes(rest) + chunk[:end], bytearray(chunk[end:])
                await intake.put(block)
                lines += block.count(b"\n")
                if acknowledge:
                    writer.write(b"%d\n" % lines)
                    await writer.drain()
            else:
                rest += chunk  # not copied for each piece of a long line
            if len(rest) > LONGEST:
                raise ConnectionAbortedError(f"{len(rest):,} bytes without a line end exceed the limit of {LONGEST:,}")
    finally:
        intake.seen.unfinished += bool(rest)


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
