"""Databases of tests, a file and a server, each with the name of a table: the sink of it, and how it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.runtime.rows_of_batches import SCHEMA

from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.jdbc import Jdbc

DATABASES: Final = ("sqlite", "postgresql")


@dataclass(frozen=True)
class DatabasePlace:
    """A database, a name for a table of this test, and how the table is read."""

    url: str
    ask: Callable[[str], list[tuple[Any, ...]]]
    options: dict[str, str] = field(default_factory=dict)
    table: str = "answers"

    @property
    def is_server(self) -> bool:
        return bool(self.options)

    def sink(self, key: str = "", table: str = "", **more: Any) -> Jdbc:
        return Jdbc(self.url, table or self.table, key=key, options=self.options, **more)

    def started(self, next_batch: int = 0, key: str = "", schema: pa.Schema = SCHEMA, **claim: Any) -> Jdbc:
        """Return the sink as one more driver start of a query opens it."""
        sink = self.sink(key)
        sink.check(schema)
        sink.open(QueryStart(**{"query": "q", "next_batch": next_batch, **claim}))
        return sink

    def rows(self, *columns: str) -> list[Any]:
        """Return the sorted values of a column, by default n, or the sorted rows of several."""
        names = ", ".join(columns or ("n",))
        found = self.ask(f"SELECT {names} FROM {self.table} ORDER BY {names}")  # noqa: S608
        return found if len(columns) > 1 else [row[0] for row in found]


def on_server(server: Any, table: str = "") -> DatabasePlace:
    """Return a table of PostgreSQL, by default with a name that no other test has."""
    return DatabasePlace(server.url, server.ask, server.login, table or f"answers_{uuid4().hex[:8]}")


def database(kind: str, request: pytest.FixtureRequest, folder: Path) -> DatabasePlace:
    """Return a table that is not there yet, in a file of this folder or on the server that tests have."""
    if kind == "postgresql":
        return on_server(request.getfixturevalue("postgresql"))

    def ask(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(folder / "answers.db", isolation_level=None)) as opened:
            return opened.execute(statement).fetchall()

    return DatabasePlace(f"sqlite:{folder}/answers.db", ask)
