"""The current front in a folder with one file, which is replaced atomically."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.locations import Location
from skypane.runtime.spark.document_store import DocumentStore, parquet_bytes
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import FRONT, QueryStart, staging, take_folder
from skypane.runtime.spark.sinks.sink import Sink

FILE: Final = "front.parquet"


@dataclass(frozen=True)
class Current(Sink):
    """A folder that always holds the complete front of the last batch, in one parquet file with a fixed name.

    A new front is written beside the file and replaces it by a rename: readers with an open file still see the old
    front, readers that open it later see the new one. In an object store the file is replaced with one request; a driver
    that is fenced between its check and this request may put an older front there, until the next batch.
    """

    path: str

    @cached_property
    def store(self) -> DocumentStore:
        """The folder; its absolute path is fixed at first use, even if the working folder changes later."""
        return DocumentStore.at(self.path, "front")

    def check(self, schema: pa.Schema) -> None:
        del schema  # parquet holds all types
        self.place()

    def place(self) -> Location:
        return self.store.place

    def open(self, claim: QueryStart) -> None:
        take_folder(self.store, claim, FRONT)

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark
        if self.store.objects is not None:
            answers.check()
            self.store.objects.put(FILE, parquet_bytes(answers.schema, [answers.table()]))
            return
        stage, draft = staging(self.store, answers.driver), f"{FRONT}-{batch_id:012d}.parquet"
        stage.write_parquet(draft, answers.schema, [answers.table()])
        stage.sync(draft)
        stage.move(draft, self.store, FILE)
        self.store.sync("")
