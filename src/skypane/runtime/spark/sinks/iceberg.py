"""Answers as rows of a table of Apache Iceberg."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

from skypane.runtime.spark.sinks.iceberg_catalog import CatalogPlace
from skypane.runtime.spark.sinks.iceberg_table import IcebergTable
from skypane.runtime.spark.sinks.open_table_sink import OpenTableSink
from skypane.types import ConfigError


@dataclass(frozen=True)
class Iceberg(OpenTableSink):
    """Writes each micro-batch to a table of Apache Iceberg, exactly once, in one commit with its number.

    A table that does not exist is created. With amended or early answers, a version of a window replaces its rows. The
    driver writes through PyIceberg, so Spark needs no jar.

    table    the table with its namespace, namespace.table
    catalog  name of the catalog, as in PyIceberg's configuration, or any other if `options` say where it is
    options  properties of the catalog, such as uri and warehouse; "$NAME" is an environment variable
    timeout  how long a batch is tried again while other writers of the table commit first

    >>> catalog = {"type": "sql", "uri": "sqlite:///catalog.db", "warehouse": "warehouse"}
    >>> output = sp.Iceberg("shop.best", options=catalog)
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=output)
    """

    table: str
    _: KW_ONLY
    catalog: str = "default"

    kind: ClassVar[str] = "Iceberg"
    remedy: ClassVar[str] = "check the options of the catalog, and what it allows this user"

    def __post_init__(self) -> None:
        parts = str(self.table).split(".")
        if len(parts) < 2 or not all(part.strip() for part in parts):
            raise ConfigError(
                f"table must be the name of a table with its namespace, as in shop.prices, got {self.table!r}"
            )
        super().__post_init__()
        object.__setattr__(self, "options", self.catalog_place.options)  # it also checks them

    @cached_property
    def catalog_place(self) -> CatalogPlace:
        """The catalog; paths of files are absolute, even if the working folder changes later."""
        return CatalogPlace(str(self.catalog), self.options)

    @property
    def name(self) -> str:
        return self.table

    @property
    def whereabouts(self) -> str:
        return f"{self.table} of {self.catalog_place}"

    def opened_table(self) -> IcebergTable:
        return IcebergTable(self.catalog_place, self.table, self.catalog_place.opened())

    def reason(self, error: BaseException) -> str:
        return self.catalog_place.reason(error)
