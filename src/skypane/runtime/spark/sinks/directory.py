"""Answers as files in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import ClassVar, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.places import Place
from skypane.runtime.spark import folders
from skypane.runtime.spark.sinks import text
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.claim import ANSWERS, REJECTED, Claim, staging, take_folder
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store
from skypane.types import ConfigError

Format: TypeAlias = Literal["parquet", "csv", "json"]
_FIELDS = {ANSWERS: "output", REJECTED: "late"}


@dataclass(frozen=True)
class Directory(Sink):
    """A folder of files, exactly once: a batch's files have names of their own and replace what a lost try left.

    path    a path, absolute or as seen from the working folder, or a URI
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
    def store(self) -> Store:
        """The folder; where it is has been settled once, though the process may change its working folder."""
        return Store.at(self.path, _FIELDS[self.holds])

    def check(self, schema: pa.Schema) -> None:
        self.place()
        for field in schema:
            if self.format == "csv" and (pa.types.is_nested(field.type) or pa.types.is_binary(field.type)):
                raise ConfigError(
                    f"column {field.name!r} is of type {field.type}, which csv cannot hold: "
                    f"drop it, make it a text, or write parquet or json"
                )

    def place(self) -> Place:
        return self.store.place

    def for_rejected(self) -> Directory:
        return replace(self, holds=REJECTED)

    def open(self, claim: Claim) -> None:
        take_folder(self.store, claim, self.holds)

    def stage(self, driver: str) -> Store | None:
        return staging(self.store, driver) if self.format == "parquet" else None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        del spark  # files are written by pyarrow: a job would cost more than the writing
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
        # What a lost try left over: its files are numbered without a gap too, and go from the last to the first, so
        # that a kill in between leaves no gap either. They go through the stage, which only the driver in charge has.
        left = (f"{prefix}-{index:05d}.{self.format}" for index in count(len(files)))
        folders.remove(reversed(list(takewhile(target.has, left))), target, stage)
        if files:
            target.sync("")

    def _written(self, stage: Store, prefix: str, answers: Answers) -> tuple[str, ...]:
        if not answers.row_count:
            return ()
        name = f"{prefix}-driver.{self.format}"
        if self.format == "parquet":
            stage.write_parquet(name, answers.schema, answers.tables)
        else:
            with stage.open_output(name) as stream:
                _WRITERS[self.format](answers.table(), stream)
        return (name,)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {"csv": text.write_csv, "json": text.write_json}
