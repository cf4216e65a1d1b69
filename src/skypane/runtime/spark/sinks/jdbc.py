"""Answers as rows of a table of a relational database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.addresses import without_secrets
from skypane.operators.window_query import WINDOW_START
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.database import Database
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.postgresql import PostgreSql
from skypane.runtime.spark.sinks.row_changes import are_of_windows, is_versioned
from skypane.runtime.spark.sinks.sink import Sink, check_role, copied
from skypane.runtime.spark.sinks.sqlite_file import SqliteFile
from skypane.runtime.spark.sinks.table_writer import TableWriter, columns_of
from skypane.types import CheckpointError, ConfigError, Duration, Length, micros


@dataclass(frozen=True)
class Jdbc(Sink):
    """Writes each micro-batch to a table of PostgreSQL or SQLite, exactly once, in one transaction with its number.

    A table that does not exist is created. With amended or early answers, a version of a window replaces its rows; with
    `key`, changes ("ADD", "DEL") are applied.

    url      postgresql://host:port/database or sqlite:path, also with "jdbc:" before it
    table    the table, or schema.table
    key      columns by which a row replaces an earlier one, or their names separated by commas; a table that exists
             needs a unique constraint on them. Default: each row is added
    options  parameters of the connection to PostgreSQL, such as user; "$NAME" is an environment variable
    timeout  how long the database may take to connect, and half of how long a transaction waits for another one

    >>> output = sp.Jdbc("sqlite:best.db", "best", key=("window_start", "city"))
    >>> job = sp.stream(
    ...     arriving, sp.Skyline("price MIN", by="city"), time="ts", window="1 hour", checkpoint="state", output=output
    ... )
    """

    url: str
    table: str
    _: KW_ONLY
    key: str | Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    timeout: Duration = "30 seconds"
    _schemas: list[pa.Schema] = field(default_factory=list, init=False, repr=False, compare=False)
    _opened: list[TableWriter] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", str(self.table))  # a job file may have a number there
        if not all(part.strip() for part in self.table.split(".")):
            raise ConfigError(f"table must be the name of a table, or schema.table, got {self.table!r}")
        columns = self.key.split(",") if isinstance(self.key, str) else self.key
        object.__setattr__(self, "key", tuple(name.strip() for name in columns if name.strip()))
        if not isinstance(self.options, Mapping):
            raise ConfigError(f"table {self.table}: options must be a mapping of parameters of the connection")
        object.__setattr__(self, "options", {name: str(value) for name, value in sorted(self.options.items())})
        object.__setattr__(self, "timeout", Length(micros(self.timeout, "timeout")))
        if micros(self.timeout, "timeout") <= 0:
            raise ConfigError(f"table {self.table}: timeout must be longer than 0, got {self.timeout!r}")
        if "." in self.table and not self.database.has_schemas:  # it also checks url and options
            raise ConfigError(f"table {self.table}: {self.database} has no schemas: give the name of the table only")
        self._check_names(self.table.split("."))

    def _check_names(self, names: Sequence[str]) -> None:
        limit = self.database.longest_name
        for name in names:
            if limit is not None and len(name.encode()) > limit:
                raise ConfigError(
                    f"table {self.table}: the name {name!r} has {len(name.encode())} bytes, and {self.database} keeps "
                    f"{limit}: choose a shorter one"
                )

    @cached_property
    def database(self) -> Database:
        """The database; the absolute path of a file is fixed here, even if the working folder changes later."""
        address, timeout = str(self.url).removeprefix("jdbc:"), micros(self.timeout, "timeout") / 1e6
        kind, _, rest = address.partition(":")
        if kind in {"postgresql", "postgres"} and rest.startswith("//"):
            return PostgreSql(f"postgresql:{rest}", self.options, timeout)
        if kind == "sqlite" and rest and not rest.startswith("//"):
            if self.options:
                raise ConfigError(f"table {self.table}: options are for PostgreSQL, and url is {self.url!r}")
            return SqliteFile(str(Path(rest).expanduser().absolute()), timeout)
        shown = without_secrets(str(self.url).partition("?")[0])
        raise ConfigError(f"url must be postgresql://host:5432/database or sqlite:path, got {shown!r}")

    def check(self, schema: pa.Schema) -> None:
        columns = columns_of(schema, tuple(self.key))
        for name in self.key:
            if name not in columns:
                raise ConfigError(
                    f"table {self.table}: key column {name!r} is not a column of the rows, which are {', '.join(columns)}"
                )
        self._check_names(columns)
        for name in columns:
            kind = schema.field(name).type
            if self.database.type_of(kind) is None:
                raise ConfigError(
                    f"table {self.table}: column {name!r} is of type {kind}, for which {self.database} has no column; "
                    f"drop it, or cast it to a number or a string"
                )
        by_window = is_versioned(schema) or are_of_windows(schema)
        if self.key and by_window and WINDOW_START not in self.key:
            raise ConfigError(
                f"table {self.table}: key must have the column {WINDOW_START}, as a window that is answered again would "
                f"replace rows of later ones; got {', '.join(self.key)}"
            )
        self._schemas[:] = [schema]

    def for_job(self) -> Jdbc:
        return copied(self, "_schemas", "_opened")

    def open(self, claim: QueryStart) -> None:
        check_role((writer.claim for writer in self._opened), claim, f"table {self.table}")
        self._opened[:] = [TableWriter.started(self.database, self.table, tuple(self.key), claim, self._schemas)]

    def received(self, batch_id: int) -> bool:
        return any(batch_id < writer.next_batch for writer in self._opened)

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # the driver writes: one transaction has one connection
        if not self._opened:
            raise CheckpointError(f"table {self.table}: the sink has not been opened; start the query")
        writer = self._opened[0]
        if answers.row_count or batch_id < writer.next_batch or writer.claim.role == "front":
            writer.write(batch_id, answers)
