"""Where answers go. A sink is told the batch: told twice, it must end up as if told once."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import count, takewhile
from types import NoneType
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.csv as pc_csv
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.claim import Claim, staging, take_folder
from skypane.runtime.spark.store import Store
from skypane.types import ConfigError

Format: TypeAlias = Literal["parquet", "csv", "json"]
ANSWERS = "part"
"""How the files' names begin."""


@runtime_checkable
class Sink(Protocol):
    """Takes the answers of one batch after the other."""

    def open(self, claim: Claim) -> None:
        """Prepare for the batches of a start of a query; raise CheckpointError if another query writes here."""
        ...

    def stage(self, driver: str) -> Store | None:
        """Return where the start `driver` of a query should write parquet files of answers so that write() need only move them, or None."""
        ...

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        """Take the answers of a batch; called again with the same rows if the batch was not committed."""
        ...


@dataclass(frozen=True)
class Directory:
    """A folder of files, exactly once: a batch's files have names of their own and replace what a lost try left."""

    path: str
    format: Format = "parquet"

    def __post_init__(self) -> None:
        if self.format not in ("parquet", "csv", "json"):
            raise ConfigError(f"output format must be parquet, csv or json, got {self.format!r}")

    @property
    def store(self) -> Store:
        return Store.at(self.path)

    def check(self, schema: pa.Schema) -> None:
        """Raise ConfigError if rows of `schema` have a column that the format cannot hold."""
        for field in schema:
            if self.format == "csv" and (pa.types.is_nested(field.type) or pa.types.is_binary(field.type)):
                raise ConfigError(
                    f"column {field.name!r} is of type {field.type}, which csv cannot hold: "
                    f"drop it, make it a text, or write parquet or json"
                )

    def open(self, claim: Claim) -> None:
        take_folder(self.store, claim, ANSWERS)

    def stage(self, driver: str) -> Store | None:
        return staging(self.store, driver) if self.format == "parquet" else None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        del spark  # files are written by pyarrow: a job would cost more than the writing
        target, prefix = self.store, f"{ANSWERS}-{batch_id:012d}"
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
        for name in reversed(list(takewhile(target.has, left))):
            target.move(name, stage, name)
            stage.remove([name])
        if files:
            target.sync("")

    def _written(self, stage: Store, prefix: str, answers: Answers) -> tuple[str, ...]:
        if not answers.rows:
            return ()
        name = f"{prefix}-driver.{self.format}"
        if self.format == "parquet":
            stage.write_parquet(name, answers.schema, answers.tables)
        else:
            with stage.open_output(name) as stream:
                _WRITERS[self.format](answers.table(), stream)
        return (name,)


def _write_csv(table: pa.Table, stream: pa.NativeFile) -> None:
    pc_csv.write_csv(table, stream)


def _write_json(table: pa.Table, stream: pa.NativeFile) -> None:
    for batch in table.to_batches(max_chunksize=10_000):
        lines = (json.dumps(_json(row), ensure_ascii=False) + "\n" for row in batch.to_pylist(maps_as_pydicts="lossy"))
        stream.write("".join(lines).encode())


def _json(value: Any) -> Any:
    """Return `value` in JSON as Spark writes and reads it: no number loses a digit, and no infinity becomes null."""
    if isinstance(value, dict):
        return {str(_json(name)): _json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, (str, int, float, NoneType)) else str(value)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {"csv": _write_csv, "json": _write_json}


@dataclass(frozen=True)
class Console:
    """Prints the answers of each batch."""

    rows: int = 20

    def open(self, claim: Claim) -> None:
        """Nothing to prepare."""

    def stage(self, driver: str) -> Store | None:
        del driver
        return None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        if answers.rows:
            print(f"batch {batch_id}: {len(answers.windows)} windows, {answers.rows} rows")  # noqa: T201 - that is its job
            answers.dataframe(spark).show(self.rows, truncate=False)


class Memory:
    """Keeps the answers of the last `batches` batches in the driver: for tests and notebooks."""

    def __init__(self, batches: int | None = None) -> None:
        if batches is not None and batches < 1:
            raise ConfigError(f"a memory must hold at least 1 batch, got batches={batches}")
        self._tables: dict[int, pa.Table] = {}
        self._batches = batches

    def open(self, claim: Claim) -> None:
        """Nothing to prepare."""

    def stage(self, driver: str) -> Store | None:
        del driver
        return None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        del spark
        # A new dictionary each time: another thread may be reading the old one.
        tables = {**self._tables, batch_id: answers.table()}
        while self._batches is not None and len(tables) > self._batches:
            del tables[next(iter(tables))]
        self._tables = tables

    def table(self) -> pa.Table:
        """Return all rows kept, in batch order; raise LookupError before the first batch."""
        tables = self._tables
        if not tables:
            raise LookupError("no batch has been answered yet")
        return pa.concat_tables(tables.values())


@dataclass(frozen=True)
class Call:
    """Hands each batch's answers to a function (DataFrame, batch id), which must be idempotent by the id."""

    function: Callable[[DataFrame, int], None]

    def open(self, claim: Claim) -> None:
        """Nothing to prepare."""

    def stage(self, driver: str) -> Store | None:
        del driver
        return None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        self.function(answers.dataframe(spark), batch_id)


def sink(output: object) -> Sink:
    """Return the sink that a user's `output` argument means."""
    if isinstance(output, Sink) and not isinstance(output, type):
        return output
    if isinstance(output, (str, os.PathLike)):
        return Directory(os.fspath(output))
    if callable(output) and not isinstance(output, type):
        return Call(output)
    raise ConfigError(
        f"output must be a path, Directory, Console(), Memory(), or a function of (DataFrame, batch id), got {output!r}"
    )
