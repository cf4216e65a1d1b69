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
from types import TracebackType
from typing import Self
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._sockets.clear()

    def watch(self, one: socket.socket) -> None:
        """Shut this connection down, too, when the time is over."""
        with self._lock:
            self._sockets.append(one)
            if self.over:
                _cut(one)

    def handlers(self, context: SSLContext | None) -> tuple[HTTPHandler, HTTPSHandler]:
        """Return the handlers that open watched connections."""
        return _Plain(self), _Encrypted(self, context)

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
    def __init__(self, limit: Deadline, host: str, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self._limit = limit

    def connect(self) -> None:
        super().connect()
        self._limit.watch(self.sock)


class _EncryptedConnection(HTTPSConnection):
    def __init__(self, limit: Deadline, context: SSLContext | None, host: str, timeout: float) -> None:
        super().__init__(host, timeout=timeout, context=context)
        self._limit = limit

    def connect(self) -> None:
        super().connect()  # the whole handshake is within one timeout
        self._limit.watch(self.sock)


class _Plain(HTTPHandler):
    def __init__(self, limit: Deadline) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, self._limit), req)


class _Encrypted(HTTPSHandler):
    def __init__(self, limit: Deadline, context: SSLContext | None) -> None:
        super().__init__()
        self._limit, self._ours = limit, context

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_EncryptedConnection, self._limit, self._ours), req)
