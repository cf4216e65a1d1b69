"""A bound on the total time of one exchange with a server.

A socket's timeout applies to each piece of data, so a server that sends single bytes of its headers never exceeds it.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from threading import Lock, Timer
from typing import Any, Self
from urllib.request import HTTPHandler, HTTPSHandler, Request


class Deadline:
    """Shuts the watched connections down after `seconds`; `over` is True from then on."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._sockets: list[socket.socket] = []
        self._lock = Lock()
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._sockets.clear()

    def watch(self, one: socket.socket) -> None:
        """Shut this connection down, too, when the time is over."""
        with self._lock:
            self._sockets.append(one)
            if self.over:
                _cut(one)

    def handler(self, context: SSLContext | None) -> HTTPHandler:
        """Return the handler that opens watched connections, plain and encrypted ones."""
        return _Handler(self, context)

    def _end(self) -> None:
        with self._lock:
            self.over = True
            for one in self._sockets:
                _cut(one)


def _cut(one: socket.socket) -> None:
    """Shut a connection down, so that its reader reaches the end; with TLS, below the encryption."""
    with suppress(OSError):  # it has already ended
        socket.socket.shutdown(one, socket.SHUT_RDWR)


class _Connection(HTTPConnection):
    def __init__(self, limit: Deadline, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._limit = limit

    def connect(self) -> None:
        super().connect()  # with TLS the whole handshake, which is within one timeout
        self._limit.watch(self.sock)


class _EncryptedConnection(_Connection, HTTPSConnection):
    """The same with TLS."""


class _Handler(HTTPSHandler, HTTPHandler):
    """Opens connections that a deadline watches; urllib then uses neither of its own handlers."""

    def __init__(self, limit: Deadline, context: SSLContext | None) -> None:
        super().__init__()
        self._limit, self._ours = limit, context

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, self._limit), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_EncryptedConnection, self._limit, context=self._ours), req)
