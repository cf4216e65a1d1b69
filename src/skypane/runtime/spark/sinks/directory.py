"""Answers in files of a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import ClassVar, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.locations import Location
from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import ANSWERS, REJECTED, QueryStart, staging, take_folder
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError

Format: TypeAlias = Literal["parquet", "csv", "json"]
_FIELDS = {ANSWERS: "output", REJECTED: "late"}


@dataclass(frozen=True)
class Directory(Sink):
    """Writes files to a folder, exactly once: each batch has its own file names and replaces files of failed attempts.

    path    a path, absolute or relative to the working folder, or a URI
    format  "parquet", "csv" or "json"
    """

    job_formats: ClassVar[tuple[str, ...]] = get_args(Format)

    path: str
    format: Format = "parquet"
    _: KW_ONLY
    holds: str = ANSWERS

    def __post_init__(self) -> None:
        if self.format not in self.job_formats:
            raise ConfigError(f"output format must be parquet, csv or json, got {self.format!r}")

    @cached_property
    def store(self) -> DocumentStore:
        """The folder; its absolute path is fixed at first use, even if the working folder changes later."""
        return DocumentStore.at(self.path, _FIELDS[self.holds])

    def check(self, schema: pa.Schema) -> None:
        self.place()
        for field in schema:
            if self.format == "csv" and (pa.types.is_nested(field.type) or pa.types.is_binary(field.type)):
                raise ConfigError(
                    f"column {field.name!r} is of type {field.type}, which csv cannot hold; "
                    f"drop it, make it a string, or write parquet or json"
                )

    def place(self) -> Location:
        return self.store.place

    def for_rejected(self) -> Directory:
        return replace(self, holds=REJECTED)

    def open(self, claim: QueryStart) -> None:
        take_folder(self.store, claim, self.holds)

    def stage(self, driver: str) -> DocumentStore | None:
        return staging(self.store, driver) if self.format == "parquet" else None

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # pyarrow writes the files: a Spark job would cost more than the writing
        target, prefix = self.store, f"{self.holds}-{batch_id:012d}"
        stage = staging(target, answers.driver)
        if answers.store is None or self.format != "parquet":
            files = self._written(stage, prefix, answers)
        else:
            files = answers.files
        stage.sync(*files)
        final = [f"{prefix}-{index:05d}.{self.format}" for index in range(len(files))]
        for name, wanted in zip(files, final, strict=True):
            stage.move(name, target, wanted)
        # Remove leftover files of a failed attempt. They are numbered without gaps, and are removed from the last to
        # the first, so that a kill in between leaves no gap. They are moved through the stage, which a fenced driver
        # does not have.
        left = (f"{prefix}-{index:05d}.{self.format}" for index in count(len(files)))
        driver_folders.remove(reversed(list(takewhile(target.has, left))), target, stage)
        if files:
            target.sync("")

    def _written(self, stage: DocumentStore, prefix: str, answers: BatchRows) -> tuple[str, ...]:
        if not answers.row_count:
            return ()
        name = f"{prefix}-driver.{self.format}"
        if self.format == "parquet":
            stage.write_parquet(name, answers.schema, answers.tables)
        else:
            with stage.open_output(name) as stream:
                _WRITERS[self.format](answers.table(), stream)
        return (name,)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {
    "csv": text_format.write_csv,
    "json": text_format.write_json,
}
