"""Answers as rows of a table of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.iceberg_catalog import CatalogPlace, option_texts
from skypane.runtime.spark.sinks.iceberg_rows import check_types
from skypane.runtime.spark.sinks.iceberg_table import IcebergTable, OvertakenError
from skypane.runtime.spark.sinks.iceberg_writer import IcebergWriter
from skypane.runtime.spark.sinks.sink import Sink, check_role, copied
from skypane.types import CheckpointError, ConfigError, Duration, Length, micros


@dataclass(frozen=True)
class Iceberg(Sink):
    """Writes each micro-batch to a table of Apache Iceberg, exactly once, in one commit with its number.

    A table that does not exist is created. With amended or early answers, a version of a window replaces its rows. The
    driver writes through PyIceberg, so Spark needs no jar.

    table    the table with its namespace, namespace.table
    catalog  name of the catalog, as in PyIceberg's configuration, or any other if `options` say where it is
    options  properties of the catalog, such as uri and warehouse; "$NAME" is an environment variable
    timeout  how long a batch is tried again while other writers of the table commit first
    """

    table: str
    _: KW_ONLY
    catalog: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    timeout: Duration = "1 minute"
    _schemas: list[pa.Schema] = field(default_factory=list, init=False, repr=False, compare=False)
    _opened: list[IcebergWriter] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = str(self.table).split(".")
        if len(parts) < 2 or not all(part.strip() for part in parts):
            raise ConfigError(
                f"table must be the name of a table with its namespace, as in shop.prices, got {self.table!r}"
            )
        object.__setattr__(self, "options", option_texts(self.options, f"table {self.table}"))
        object.__setattr__(self, "timeout", Length(micros(self.timeout, "timeout")))
        if micros(self.timeout, "timeout") <= 0:
            raise ConfigError(f"table {self.table}: timeout must be longer than 0, got {self.timeout!r}")
        object.__setattr__(self, "options", self.catalog_place.options)  # it also checks them

    @cached_property
    def catalog_place(self) -> CatalogPlace:
        """The catalog; paths of files are absolute, even if the working folder changes later."""
        return CatalogPlace(str(self.catalog), self.options)

    def check(self, schema: pa.Schema) -> None:
        check_types(schema, self.table)
        self._schemas[:] = [schema]

    def for_job(self) -> Iceberg:
        return copied(self, "_schemas", "_opened")

    def open(self, claim: QueryStart) -> None:
        check_role((writer.claim for writer in self._opened), claim, f"table {self.table}")
        (schema,) = self._schemas
        with self._explained(), closing(self.catalog_place.opened()) as catalog:
            table = IcebergTable(self.catalog_place, self.table, catalog)
            self._opened[:] = [IcebergWriter.started(table, claim, schema, micros(self.timeout, "timeout") / 1e6)]

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # the driver writes the files: one commit has one writer
        if not self._opened:
            raise CheckpointError(f"table {self.table}: the sink has not been opened; start the query")
        writer = self._opened[0]
        if answers.row_count or batch_id < writer.next_batch or writer.claim.role == "front":
            # A catalog that was closed opens connections again; none stays open until the next batch, or after the last.
            with self._explained(f"batch {batch_id}"), closing(writer.table.catalog):
                writer.write(batch_id, answers)

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Replace errors of the client by ones that name the table and the remedy, and that show no secret."""
        try:
            yield
        except (CheckpointError, ConfigError):
            raise
        except Exception as error:  # noqa: BLE001 - each catalog and each store has errors of its own
            place = self.catalog_place
            if not what:
                remedy = "check the options of the catalog, and what it allows this user"
                if isinstance(error, OvertakenError):
                    remedy = "start the query again"
                raise ConfigError(
                    f"table {self.table} of {place} cannot be used ({place.reason(error)}); {remedy}"
                ) from None
            raise OSError(
                f"table {self.table} of {place} did not take {what} ({place.reason(error)}); it has none of its rows, or "
                f"all, and takes the batch when the query is started again"
            ) from None
