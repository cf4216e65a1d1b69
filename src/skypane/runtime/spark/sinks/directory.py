"""Answers in files of a folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.locations import Location
from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import ANSWERS, REJECTED, QueryStart, staging, take_folder
from skypane.runtime.spark.sinks.object_folder import ObjectBatch
from skypane.runtime.spark.sinks.repeated_batch import missing_rows, same_lines
from skypane.runtime.spark.sinks.roll import BYTES, Roll
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError, Duration

log = logging.getLogger(__name__)

Format: TypeAlias = Literal["parquet", "csv", "json"]
_FIELDS = {ANSWERS: "output", REJECTED: "late"}
_NOT_IN_CSV: Final = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True)
class Directory(Sink):
    """Writes files to a folder, exactly once: each batch has its own file names, and a file that is there never changes.

    A batch that is repeated after a kill adds only the rows that its files lack, so a reader, such as the next query, may
    read a file as soon as it is there. (If a batch comes with other rows, because Spark has lost its record of it or an
    expression of the query has changed, it replaces its files.) In an object store a driver's first batch has a file even if it has no rows.

    path      a path, absolute or relative to the working folder, or a URI
    format    "parquet", "csv" or "json"
    one_file  one file for each micro-batch, also if several workers answer its windows: a reader of the files in order
              of their times gets whole batches, and windows in order (csv and json are always so)
    roll      a length of time, such as "5 minutes": rows of several micro-batches share a file, and wait for it in the
              checkpoint, where they are as safe as in the file; the oldest for so long at most, and until the running
              batch, or second, ends. A stop, a drain and the next start write the file at once
    roll_bytes  bytes of parquet at which the file is written before that time

    >>> output = sp.Directory("best", "json", one_file=True)
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=output)
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> spark.read.json("best").select("price").show()
    +-----+
    |price|
    +-----+
    | 70.0|
    +-----+
    """

    job_formats: ClassVar[tuple[str, ...]] = get_args(Format)

    path: str
    format: Format = "parquet"
    _: KW_ONLY
    one_file: bool = False
    roll: Duration | None = None
    roll_bytes: int = BYTES
    holds: str = ANSWERS

    def __post_init__(self) -> None:
        if self.format not in self.job_formats:
            raise ConfigError(f"output format must be parquet, csv or json, got {self.format!r}")
        if not isinstance(self.one_file, bool):
            raise ConfigError(f"one_file must be True or False, got {self.one_file!r}")
        if self.roll is None and self.roll_bytes != BYTES:
            raise ConfigError("roll_bytes needs roll=, the longest time for which rows wait for their file")
        self.rolling()

    @cached_property
    def store(self) -> DocumentStore:
        """The folder; its absolute path is fixed at first use, even if the working folder changes later."""
        return DocumentStore.at(self.path, _FIELDS[self.holds])

    def check(self, schema: pa.Schema) -> None:
        self.place()
        for field in schema:
            if self.format == "csv" and any(holds(field.type) for holds in _NOT_IN_CSV):
                raise ConfigError(
                    f"column {field.name!r} is of type {field.type}, which csv cannot hold; "
                    f"drop it, make it a string, or write parquet or json"
                )

    def place(self) -> Location:
        return self.store.place

    def for_rejected(self) -> Directory:
        return replace(self, holds=REJECTED)

    def rolling(self) -> Roll | None:
        return None if self.roll is None else Roll.of(self.roll, self.roll_bytes)

    def open(self, claim: QueryStart) -> None:
        take_folder(self.store, claim, self.holds)

    def stage(self, driver: str) -> DocumentStore | None:
        return staging(self.store, driver) if self.format == "parquet" else None

    def received(self, batch_id: int) -> bool:
        return self.store.has(self._name(self._prefix(batch_id), 0))

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # pyarrow writes the files: a Spark job would cost more than the writing
        target, prefix = self.store, self._prefix(batch_id)
        if target.objects is not None:
            ObjectBatch(target, prefix, self.format, self.one_file).deliver(answers)
            return
        stage = staging(target, answers.driver)
        if target.has(self._name(prefix, 0)) and self._repeated(stage, prefix, answers):
            return
        if answers.store != stage or self.format != "parquet":
            files = self._written(stage, prefix, answers)
        elif self.one_file and len(answers.files) > 1:
            files = self._joined(stage, prefix, answers)
        else:
            files = answers.files
        stage.sync(*files)
        final = [self._name(prefix, index) for index in range(len(files))]
        for name, wanted in zip(files, final, strict=True):
            stage.move(name, target, wanted)
        # Remove leftover files of a failed attempt. They are numbered without gaps, and are removed from the last to
        # the first, so that a kill in between leaves no gap. They are moved through the stage, which a fenced driver
        # does not have.
        driver_folders.remove(reversed(self._published(prefix, len(files))), target, stage)
        if files:
            target.sync("")

    def _prefix(self, batch_id: int) -> str:
        return f"{self.holds}-{batch_id:012d}"

    def _name(self, prefix: str, index: int) -> str:
        return f"{prefix}-{index:05d}.{self.format}"

    def _published(self, prefix: str, first: int = 0) -> list[str]:
        """Return the names of a batch's files, which are numbered without gaps."""
        return list(takewhile(self.store.has, (self._name(prefix, index) for index in count(first))))

    def _repeated(self, stage: DocumentStore, prefix: str, answers: BatchRows) -> bool:
        """Add the rows that the files of a batch lack, and return True; return False if the files have other rows."""
        published = self._published(prefix)
        if self.format == "parquet":
            missing = self._missing(published, answers)
        else:
            missing = self._missing_of_text(stage, prefix, answers)
        if missing is None:
            log.warning("batch %s comes with other rows than %s has: its files are replaced", prefix, self.store.root)
            return False
        stage.remove(answers.files if answers.store is not None else ())
        files = self._written(
            stage, prefix, replace(answers, row_count=missing.num_rows, tables=(missing,), store=None)
        )
        stage.sync(*files)
        for name in files:
            stage.move(name, self.store, self._name(prefix, len(published)))
        self.store.sync("")
        return True

    def _missing(self, published: list[str], answers: BatchRows) -> pa.Table | None:
        """Return the rows that the files of a batch lack; None if they have others, or other columns."""
        if any(not self.store.parquet_schema(name).equals(answers.schema) for name in published):
            return None
        tables = [self.store.read_parquet(name, answers.schema) for name in published]
        return missing_rows(answers, pa.concat_tables(tables))

    def _missing_of_text(self, stage: DocumentStore, prefix: str, answers: BatchRows) -> pa.Table | None:
        """Return no rows if the file of a batch, which is the only one, has these rows; else None."""
        (draft,) = self._written(stage, prefix, answers) or ("",)
        same = bool(draft) and same_lines(stage.read(draft), self.store.read(self._name(prefix, 0)))
        stage.remove([draft] if draft else ())
        return answers.schema.empty_table() if same else None

    def _joined(self, stage: DocumentStore, prefix: str, answers: BatchRows) -> tuple[str, ...]:
        """Write the files of workers as one, in their order; only one of them is in memory at a time."""
        name = f"{prefix}-driver.{self.format}"
        tables = (stage.read_parquet(part, answers.schema) for part in answers.files)
        stage.write_parquet(name, answers.schema, tables)
        stage.remove(answers.files)
        return (name,)

    def _written(self, stage: DocumentStore, prefix: str, answers: BatchRows) -> tuple[str, ...]:
        if not answers.row_count:
            return ()
        name = f"{prefix}-driver.{self.format}"
        if self.format == "parquet":
            stage.write_parquet(name, answers.schema, answers.parts())
        else:
            with stage.open_output(name) as stream:
                _WRITERS[self.format](answers.table(), stream)
        return (name,)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {
    "csv": text_format.write_csv,
    "json": text_format.write_json,
}
