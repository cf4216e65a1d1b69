"""Tables of open formats, each where one test has it: its sink, how other clients read it, and what else happens to it."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableAlterer
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, HourTransform, IdentityTransform, Transform
from sqlalchemy import NullPool, create_engine
from tests.runtime.rows_of_batches import SCHEMA, of
from tests.runtime.table_histories import Interposed

from skypane.runtime.spark.sinks.delta import Delta
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.iceberg import Iceberg
from skypane.runtime.spark.sinks.open_table_sink import OpenTableSink

PROPERTY: Final = "skypane.batches.q.output"
"""The property of a table in which a sink of the query q keeps its note."""
NAME: Final = "shop.answers"
"""The table of Iceberg of a test that does not name another one."""

write_delta: Final = deltalake.write_deltalake
"""The client's own function, also where a test has interposed another."""


@dataclass(frozen=True)
class _Place(ABC):
    """A folder with a table; what is different for each format is explained at IcebergPlace."""

    folder: Path

    @abstractmethod
    def sink(self, **more: Any) -> OpenTableSink:
        """Return the sink of the table."""

    def started(self, next_batch: int = 0, schema: pa.Schema = SCHEMA, **claim: Any) -> Any:
        """Return the sink as one more driver start of a query opens it; `table` is that of the sink."""
        sink = self.sink(**({"table": claim.pop("table")} if "table" in claim else {}))
        sink.check(schema)
        sink.open(QueryStart(**{"query": "q", "next_batch": next_batch, **claim}))
        return sink

    @abstractmethod
    def read(self) -> pa.Table:
        """Return the rows, as any other client reads them."""

    def rows(self, *columns: str) -> list[Any]:
        """Return the sorted values of a column, by default n, or the sorted rows of several."""
        found = self.read().select(columns or ("n",))
        lists = [column.to_pylist() for column in found.columns]
        return sorted(zip(*lists, strict=True)) if columns else sorted(lists[0])


PARTITIONS: Final[Mapping[str, tuple[str, Transform[Any, Any]]]] = {
    "hour": ("window_start", HourTransform()),
    "bucket": ("city", BucketTransform(4)),
}
"""Partitions of Iceberg that are not by the values of a column."""


@dataclass(frozen=True)
class IcebergPlace(_Place):
    """A table in a catalog beside it."""

    options: dict[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        return {"uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}/tables"}

    def sink(self, table: str = NAME, **more: Any) -> Iceberg:
        return Iceberg(table, **{"options": {**self.properties, **self.options}, **more})

    def catalog(self) -> Catalog:
        return without_pool(load_catalog("default", **self.properties))

    def table(self, name: str = NAME) -> Table:
        return self.catalog().load_table(name)

    def read(self) -> pa.Table:
        return self.table().scan().to_arrow()

    def version(self) -> int:
        """Return a number that each commit to the table changes."""
        return len(self.table().snapshots())

    def create(self, *fields: pa.Field, partition: str | None = None, **options: Any) -> None:
        """Create the table as another client does, with a partition by one of PARTITIONS or by a column."""
        catalog = self.catalog()
        catalog.create_namespace_if_not_exists("shop")
        with catalog.create_table(NAME, pa.schema(fields), **options).update_spec() as spec:
            if partition is not None:
                spec.add_field(*PARTITIONS.get(partition, (partition, IdentityTransform())))

    def drop(self) -> None:
        self.catalog().drop_table(NAME)

    def note(self, text: str | None) -> None:
        """Write the note of the query q, or remove it."""
        with self.table().transaction() as changes:
            changes.remove_properties(PROPERTY) if text is None else changes.set_properties({PROPERTY: text})

    def roll_back(self) -> None:
        """Take the table back to the first batch of its sink."""
        table = self.table()
        table.manage_snapshots().rollback_to_snapshot(table.snapshots()[1].snapshot_id).commit()

    def foreign(self, number: int) -> None:
        """Let another writer, which knows nothing of skypane, add a row."""
        self.table().append(of(SCHEMA, (0, "elsewhere", number)).table())

    @property
    def maintenance(self) -> Mapping[str, Callable[[], None]]:
        return {"expire": self.expire, "compact": self.join_files}

    def expire(self) -> None:
        """Remove all snapshots but the last, as maintenance does."""
        self.table().maintenance.expire_snapshots().older_than(datetime(2100, 1, 1, tzinfo=UTC)).commit()

    def join_files(self) -> None:
        """Write all rows into one file, if there are any, in a commit of another writer."""
        rows = self.read()
        if rows.num_rows:  # PyIceberg warns if there are none
            self.table().overwrite(rows)

    def interposed(self, patched: pytest.MonkeyPatch) -> Interposed:
        """Stand between the sink and the client: commits of batches and of starts."""
        found = Interposed(CommitStateUnknownException("502: Bad Gateway"))
        commit = SqlCatalog.commit_table
        patched.setattr(SqlCatalog, "commit_table", lambda *what: found.commit(commit, *what))
        return found


def without_pool(catalog: Catalog) -> Catalog:
    """Return a catalog of SQL that keeps no connection open between two calls: Python 3.13 warns of one that is left."""
    sql = cast("SqlCatalog", catalog)
    sql.close()
    sql.engine = create_engine(sql.engine.url, poolclass=NullPool)
    return sql


@dataclass(frozen=True)
class DeltaPlace(_Place):
    """A table in a folder of its own."""

    @property
    def path(self) -> str:
        return str(self.folder / "answers")

    def sink(self, **more: Any) -> Delta:
        return Delta(self.path, **more)

    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def read(self) -> pa.Table:
        return self.table().to_pyarrow_table()

    def version(self) -> int:
        return self.table().version()

    def create(self, *fields: pa.Field, partition: str | None = None, **options: Any) -> None:
        DeltaTable.create(self.path, pa.schema(fields), partition_by=partition, **options)

    def drop(self) -> None:
        shutil.rmtree(self.path)

    def note(self, text: str | None) -> None:
        if text is None:
            self._remove_note()
        else:
            self.table().alter.set_table_properties({PROPERTY: text}, raise_if_not_exists=False)

    def _remove_note(self) -> None:
        """Do what ALTER TABLE ... UNSET TBLPROPERTIES does, which delta-rs has no function for."""
        found = self.table().metadata()
        metadata = {
            "id": str(found.id), "format": {"provider": "parquet", "options": {}}, "createdTime": found.created_time,
            "schemaString": self.table().schema().to_json(), "partitionColumns": found.partition_columns,
            "configuration": {name: text for name, text in found.configuration.items() if name != PROPERTY},
        }  # fmt: skip
        commit = Path(self.path) / "_delta_log" / f"{self.version() + 1:020}.json"
        commit.write_text(json.dumps({"metaData": metadata}) + "\n")

    def roll_back(self) -> None:
        self.table().restore(2)  # the commit of batch 0, after those of the creation and of the start

    def foreign(self, number: int) -> None:
        write_delta(self.path, of(SCHEMA, (0, "elsewhere", number)).table(), mode="append")

    @property
    def maintenance(self) -> Mapping[str, Callable[[], None]]:
        return {"compact": self.compact, "checkpoint": self.checkpoint}

    def join_files(self) -> None:
        self.table().optimize.compact()

    def compact(self) -> None:
        """Join the files of the table, and delete those that the last version does not need."""
        self.join_files()
        self.table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def checkpoint(self) -> None:
        """Write a checkpoint of the table's log, and delete the commits before it."""
        self.table().create_checkpoint()
        self.table().cleanup_metadata()

    def interposed(self, patched: pytest.MonkeyPatch) -> Interposed:
        found, alter = Interposed(CommitFailedError("502: Bad Gateway")), TableAlterer.set_table_properties
        patched.setattr(deltalake, "write_deltalake", lambda *what, **more: found.commit(write_delta, *what, **more))
        patched.setattr(TableAlterer, "set_table_properties", lambda *what, **more: found.commit(alter, *what, **more))
        return found


OpenPlace: TypeAlias = IcebergPlace | DeltaPlace
PLACES: Final[Mapping[str, Callable[[Path], OpenPlace]]] = {"delta": DeltaPlace, "iceberg": IcebergPlace}
