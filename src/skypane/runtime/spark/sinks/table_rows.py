"""Statements that put rows into a table of a database, and the values that they take."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.database import Database

Row = dict[str, Any]


@dataclass(frozen=True)
class Statements:
    """The statements for one table, with rows of these columns, and the columns of its key.

    A row with a null in its key is deleted and inserted: nulls of a unique key differ from each other.
    """

    database: Database
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def name(self) -> str:
        """The table, as statements name it."""
        return quoted_table(self.database, self.table)

    def create(self, schema: pa.Schema) -> str:
        columns = [self.declared(schema.field(name)) for name in self.columns]
        unique = [f"UNIQUE ({self._listed(self.key)})"] if self.key else []
        return f"CREATE TABLE {self.name} ({', '.join([*columns, *unique])})"

    def declared(self, field: pa.Field) -> str:
        """Return a column with its type."""
        return f"{self.database.quoted(field.name)} {self.database.type_of(field.type)}"

    def insert(self) -> str:
        marks = ", ".join([self.database.mark] * len(self.columns))
        return f"INSERT INTO {self.name} ({self._listed(self.columns)}) VALUES ({marks})"

    def upsert(self) -> str:
        quoted = [self.database.quoted(name) for name in self.columns if name not in self.key]
        then = f"UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in quoted)}" if quoted else "NOTHING"
        return f"{self.insert()} ON CONFLICT ({self._listed(self.key)}) DO {then}"

    def delete(self, values: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
        """Return the statement that deletes the rows with these values, and what it takes."""
        tests = [
            f"{self.database.quoted(name)} {'IS NULL' if value is None else f'= {self.database.mark}'}"
            for name, value in values.items()
        ]
        taken = tuple(value for value in values.values() if value is not None)
        return f"DELETE FROM {self.name} WHERE {' AND '.join(tests)}", taken

    def put(self, cursor: Any, rows: Sequence[Row]) -> None:
        """Insert rows, or replace those with the same key; of several rows with one key the last one stays."""
        whole = [row for row in rows if not self._has_null_key(row)]
        if whole:
            statement = self.upsert() if self.key else self.insert()
            self.database.execute_many(cursor, statement, [self._values(row) for row in whole])
        for row in filter(self._has_null_key, rows):
            self.remove(cursor, [row])
            cursor.execute(self.insert(), self._values(row))

    def remove(self, cursor: Any, rows: Sequence[Row]) -> None:
        """Delete the rows with the same keys."""
        keys = [{name: row[name] for name in self.key} for row in rows]
        for _, alike in groupby(keys, lambda key: [value is None for value in key.values()]):
            deletions = [self.delete(key) for key in alike]
            self.database.execute_many(cursor, deletions[0][0], [values for _, values in deletions])

    def _has_null_key(self, row: Row) -> bool:
        return any(row[name] is None for name in self.key)

    def _values(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.columns)

    def _listed(self, names: Sequence[str]) -> str:
        return ", ".join(map(self.database.quoted, names))


def quoted_table(database: Database, table: str) -> str:
    """Return a table's name, `name` or `schema.name`, as statements have it."""
    return ".".join(map(database.quoted, table.split(".")))


def stored_rows(rows: pa.Table) -> Iterator[list[tuple[Row, bytes]]]:
    """Yield rows as a database takes them, many at a time, each with its line of JSON.

    Times, decimals and what is nested are texts, as in JSON: no client's range of times limits them.
    """
    convert = {field.name: change for field in rows.schema if (change := _change(field.type)) is not None}
    for some in text_format.json_objects(rows):
        yield [(_stored(row, convert), text_format.json_text(row).encode()) for row in some]


def _stored(row: Row, convert: Mapping[str, Callable[[Any], Any]]) -> Row:
    changed = {name: change(row[name]) for name, change in convert.items() if row[name] is not None}
    return {**row, **changed}


def _change(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_nested(kind):
        return partial(json.dumps, ensure_ascii=False)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode
    return None
