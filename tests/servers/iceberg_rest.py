"""A server of Iceberg's REST API for tests: it keeps its tables in a catalog of SQLite, and lets in who has its token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Final

from flask import Flask, Response, request
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from werkzeug.serving import make_server

TOKEN: Final = "unheard-of"  # noqa: S105 - for a server that runs during a test only

Commit = Callable[[], Response]


@dataclass
class Server:
    """A server that runs; what `around` does with the next commit is done instead of it."""

    catalog: SqlCatalog
    port: int = 0
    around: list[Callable[[Commit], Response]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def table(self, name: str) -> Table:
        return self.catalog.load_table(name)


def failure(code: int, error: object) -> Response:
    body = {"error": {"message": str(error), "type": type(error).__name__, "code": code}}
    return Response(json.dumps(body), code, content_type="application/json")


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Run a server whose catalog and tables are in a folder."""
    catalog = SqlCatalog("rest", uri=f"sqlite:///{folder}/rest.db", warehouse=f"file://{folder}/rest")
    one = Server(catalog)
    listening = make_server("127.0.0.1", 0, _application(one), threaded=True)
    one.port = listening.server_port
    thread = Thread(target=listening.serve_forever, name="iceberg-rest")
    thread.start()
    try:
        yield one
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
        catalog.engine.dispose()


def _application(server: Server) -> Flask:
    """Return what answers requests, as the specification of the API has them."""
    app, catalog = Flask("iceberg"), server.catalog

    @app.before_request
    def _let_in() -> Response | None:
        known = request.headers.get("Authorization") == f"Bearer {TOKEN}"
        return None if known else failure(401, PermissionError("no such token"))

    @app.get("/v1/config")
    def _config() -> Any:
        return {"defaults": {}, "overrides": {}}

    @app.post("/v1/namespaces")
    def _create_namespace() -> Any:
        named = request.get_json()["namespace"]
        catalog.create_namespace(tuple(named))
        return {"namespace": named, "properties": {}}

    @app.get("/v1/namespaces/<namespace>")
    def _namespace(namespace: str) -> Any:
        return {"namespace": [namespace], "properties": catalog.load_namespace_properties(namespace)}

    @app.post("/v1/namespaces/<namespace>/tables")
    def _create_table(namespace: str) -> Any:
        asked = request.get_json()
        schema = Schema.model_validate(asked["schema"])
        return _shown(catalog.create_table((namespace, asked["name"]), schema, properties=asked["properties"]))

    @app.get("/v1/namespaces/<namespace>/tables/<table>")
    def _table(namespace: str, table: str) -> Any:
        return _shown(catalog.load_table((namespace, table)))

    @app.post("/v1/namespaces/<namespace>/tables/<table>")
    def _commit(namespace: str, table: str) -> Response:
        asked = CommitTableRequest.model_validate_json(request.data)

        def commit() -> Response:
            before = catalog.load_table((namespace, table))
            try:
                done = catalog.commit_table(before, asked.requirements, asked.updates)
            except CommitFailedException as error:
                return failure(409, error)
            return Response(done.model_dump_json(by_alias=True), content_type="application/json")

        return server.around.pop()(commit) if server.around else commit()

    _explain(app)
    return app


def _explain(app: Flask) -> None:
    codes: dict[type[Exception], int] = {
        NoSuchTableError: 404,
        NoSuchNamespaceError: 404,
        TableAlreadyExistsError: 409,
        NamespaceAlreadyExistsError: 409,
    }
    for kind, code in codes.items():
        app.register_error_handler(kind, partial(failure, code))


def _shown(table: Table) -> Response:
    shown = TableResponse.model_validate({"metadata-location": table.metadata_location, "metadata": table.metadata})
    return Response(shown.model_dump_json(by_alias=True), content_type="application/json")
