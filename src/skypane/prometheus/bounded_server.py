"""The HTTP server of the metrics: a few connections at once, each for some seconds, so that no client uses up the driver."""

from __future__ import annotations

import socket
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Thread, Timer
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app
from prometheus_client.registry import Collector

MOST: Final = 16
"""Connections at once; one more is closed unanswered, and Prometheus reads the metrics at its next interval."""
LONGEST: Final = 30.0
"""Seconds of a connection, whatever it sends."""


class BoundedServer(ThreadingMixIn, WSGIServer):
    """Serves what a registry collects, in a thread of its own, until close()."""

    daemon_threads = True

    def __init__(self, host: str, port: int, registry: Collector) -> None:
        """Listen at a host's address of its first family; raise OSError, or UnicodeError for a host that cannot be a name."""
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__((str(address[0]), port), _SilentHandler)
        self.set_app(make_wsgi_app(registry))
        self._free = BoundedSemaphore(MOST)
        self._thread = Thread(target=self.serve_forever, name="skypane metrics", daemon=True)
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # there is no thread for it
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        limit = Timer(LONGEST, _ended, [request])
        limit.daemon = True
        limit.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: the query has no error when a client goes."""

    def close(self) -> None:
        """Free the port."""
        self.shutdown()
        self.server_close()
        self._thread.join()


def _ended(request: socket.socket) -> None:
    with suppress(OSError):  # it has ended meanwhile
        request.shutdown(socket.SHUT_RDWR)


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log nothing."""
