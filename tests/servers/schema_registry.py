"""A schema registry for tests: it keeps what it is given in memory and returns it over HTTP, as the API of Confluent says.

It answers the requests of writers and readers. It does not check whether schemas are compatible, and knows one form of each
schema: that in which it was registered, which for Protobuf is what its clients ask for (descriptors in base64).
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LOGIN = "reader:unheard-of"


@dataclass
class RegistryServer:
    """A registry that runs.

    schemas   the registered schemas: that with identifier i at place i - 1
    versions  subject -> identifiers, in the order of versions
    guarded   whether it requires the login
    broken    the status that it answers with, whatever is requested; None: it works
    requests  the requests, in order
    """

    schemas: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, list[int]] = field(default_factory=dict)
    guarded: bool = False
    broken: int | None = None
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def registered(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        identifier = self.schemas.index(schema) + 1
        of_subject = self.versions.setdefault(subject, [])
        if identifier not in of_subject:
            of_subject.append(identifier)
        return identifier

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        match method, *path.strip("/").split("/"):
            case "POST", "subjects", subject, "versions":
                return 200, {"id": self.registered(unquote(subject), body)}
            case "POST", "subjects", subject if body in self.schemas:
                return self._version(unquote(subject), self.schemas.index(body) + 1)
            case "GET", "schemas", "ids", identifier if int(identifier) <= len(self.schemas):
                return 200, self.schemas[int(identifier) - 1]
            case "GET", "subjects", subject, "versions", version if unquote(subject) in self.versions:
                return self._version(unquote(subject), self.versions[unquote(subject)][int(version) - 1])
            case _, "subjects" | "schemas", *_:
                return 404, {"error_code": 40403, "message": "not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _version(self, subject: str, identifier: int) -> tuple[int, Any]:
        version = self.versions[subject].index(identifier) + 1
        return 200, {"subject": subject, "version": version, "id": identifier, **self.schemas[identifier - 1]}


class _Handler(BaseHTTPRequestHandler):
    registry: RegistryServer

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: dict[str, Any]) -> None:
        registry, path = self.registry, urlsplit(self.path).path
        registry.requests.append(f"{self.command} {path}")
        login = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
        if registry.broken is not None:
            status, answer = registry.broken, {"error_code": 50001, "message": "broken"}
        elif registry.guarded and self.headers.get("Authorization") != login:
            status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
        else:
            body = {key: value for key, value in body.items() if key in {"schema", "schemaType", "references"}}
            status, answer = registry.answer(self.command, path, body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def running() -> Iterator[RegistryServer]:
    """Run a registry for as long as the block lasts."""
    registry = RegistryServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": registry}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
