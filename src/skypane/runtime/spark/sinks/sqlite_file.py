"""A file of SQLite, by Python's own client."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from skypane.runtime.spark.sinks.database import whole_number_bits

_INTEGER: Final = 64
_TEXTS: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_timestamp,
    pa.types.is_date32,
    pa.types.is_decimal,
    pa.types.is_nested,
)


@dataclass(frozen=True)
class SqliteFile:
    """A database in a file: times, decimals and nested values are texts, as in JSON.

    timeout  seconds to wait for the transaction of another process
    """

    path: str
    timeout: float = 30.0

    mark = "?"
    lock = ""  # a transaction locks the file
    has_schemas = False
    longest_name = None
    error = sqlite3.Error
    passing_errors = (sqlite3.OperationalError,)

    def __str__(self) -> str:
        return f"sqlite:{self.path}"

    def lacks_unique_key(self, error: Exception) -> bool:
        return str(error).startswith("ON CONFLICT clause does not match")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        # Transactions begin where this says so, and what is not committed is gone when the connection ends.
        with closing(sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)) as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            yield cursor
            cursor.execute("COMMIT")

    def execute_many(self, cursor: Any, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        cursor.executemany(statement, values)

    def lock_creation(self, cursor: Any) -> None:
        pass  # a transaction locks the file

    def columns(self, cursor: Any, table: str) -> list[str]:
        return [name for (name,) in cursor.execute("SELECT name FROM pragma_table_info(?)", (table,))]

    def namesakes(self, cursor: Any, name: str) -> list[str]:
        return [name] if self.columns(cursor, name) else []

    def is_same(self, cursor: Any, one: str, other: str) -> bool:
        return bool(self.columns(cursor, one)) and one.lower() == other.lower()

    def quoted(self, name: str) -> str:
        return '"{}"'.format(name.replace('"', '""'))

    def type_of(self, kind: pa.DataType) -> str | None:
        bits = whole_number_bits(kind)
        if bits is not None:
            return "INTEGER" if bits <= _INTEGER else None
        if pa.types.is_boolean(kind):
            return "INTEGER"
        if pa.types.is_floating(kind):
            return "REAL"
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return "BLOB"
        return "TEXT" if any(test(kind) for test in _TEXTS) else None
