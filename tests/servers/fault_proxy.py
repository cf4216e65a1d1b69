"""A proxy in front of a server of S3's API that counts requests, and spoils those that a test chooses.

A fault that comes "after" comes when the server has done what was requested: the client cannot know whether it has.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

FINE: Final = "fine"
BEFORE: Final = ("reset before", "503 before")
AFTER: Final = ("reset after", "503 after", "silent after")
DENIED: Final = "denied"
BAD_KEY: Final = "bad key"
SKEWED: Final = "skewed"
_OWN: Final = {"Content-Length", "Transfer-Encoding", "Connection", "Date", "Server"}
"""Headers that the proxy writes itself."""
_CODES: Final = {DENIED: "AccessDenied", BAD_KEY: "InvalidAccessKeyId", SKEWED: "RequestTimeTooSkewed"}

_DATES: Final = {
    r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT": "%a, %d %b %Y %H:%M:%S GMT",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d": "%Y-%m-%dT%H:%M:%S",
}
"""Dates in headers and in lists of objects, as strptime() reads them."""


class Request(NamedTuple):
    """A request: its kind as S3 bills it ("PUT", "GET", "HEAD", "LIST", "POST"), its key, its number, and what it is after.

    after   the key after which a list begins
    """

    kind: str
    key: str
    number: int
    after: str = ""


class FaultProxy:
    """Passes requests on to `port`; `choose` names a fault for each."""

    def __init__(self, port: int) -> None:
        self._to = port
        #: called when the server has done what the next request requested, before its answer
        self.afterwards: Callable[[], object] | None = None
        #: seconds before each request, for measurements
        self.delay = 0.0
        #: how far the clock of the store is ahead in its answers
        self.ahead = timedelta(0)
        self.choose: Callable[[Request], str] = lambda _: FINE
        self.requests: list[Request] = []
        #: set at the end: silent connections are closed then
        self.over = threading.Event()
        self._lock = threading.Lock()

    def seen(self, method: str, path: str) -> Request:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        kind = "LIST" if "list-type" in query else method
        with self._lock:
            request = Request(kind, parts.path, len(self.requests), *query.get("start-after", []))
            self.requests.append(request)
        return request

    def passed_on(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._to)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            told = {name: self._dated(value) for name, value in answer.getheaders()}
            content = answer.read()
            if content.startswith(b"<?xml"):  # not what an object holds
                content = self._dated(content.decode()).encode()
            return answer.status, told, content
        finally:
            connection.close()

    def _dated(self, text: str) -> str:
        """Return a header or an answer with the dates of the store's clock."""
        if not self.ahead:
            return text
        for pattern, form in _DATES.items():
            text = re.sub(pattern, partial(self._later, form), text)
        return text

    def _later(self, form: str, date: re.Match[str]) -> str:
        return (datetime.strptime(date[0], form).replace(tzinfo=UTC) + self.ahead).strftime(form)


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.proxy.delay)
        fault = self.proxy.choose(self.proxy.seen(self.command, self.path))
        if fault in {*BEFORE, *_CODES}:
            return self.fail(fault)
        status, headers, content = self.proxy.passed_on(self.command, self.path, body, dict(self.headers.items()))
        if (call := self.proxy.afterwards) is not None:
            self.proxy.afterwards = None
            call()
        return self.answer(status, headers, content) if fault == FINE else self.fail(fault)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = serve  # noqa: N815 - names of http.server

    def fail(self, fault: str) -> None:
        self.close_connection = True
        if fault.startswith("503"):
            self.answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
        elif fault in _CODES:
            self.answer(403, {}, f"<Error><Code>{_CODES[fault]}</Code></Error>".encode())
        elif fault.startswith("silent"):
            self.proxy.over.wait(60)

    def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.close_connection = True
        self.send_response(status)
        for name in headers.keys() - _OWN:
            self.send_header(name, headers[name])
        is_head = self.command == "HEAD"
        self.send_header("Content-Length", headers.get("Content-Length", "0") if is_head else str(len(content)))
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def before(port: int) -> Iterator[tuple[FaultProxy, int]]:
    """Run a proxy before the server at `port`; yield it, and its own port."""
    proxy = FaultProxy(port)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy})) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy, server.server_port
        finally:
            proxy.over.set()
            server.shutdown()
            thread.join()
