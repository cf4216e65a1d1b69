"""Answers of batch queries in files that the workers write: they are not sent to Java, which costs more than writing them.

Each task of the last stage writes one file, unless it has no rows, and returns its name. When all are there, the driver
lets them appear at once (answer_folder.py).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from skypane.locations import Location
from skypane.naming import shortened
from skypane.runtime.spark.answer_folder import AnswerFolder, IfExists, check_if_exists, place_of
from skypane.runtime.spark.batch import Answering, LastStage
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.runtime.spark.machine.session_kind import over_connect
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.partials_ahead import partials_ahead
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.source_files import files_of
from skypane.types import ConfigError

BatchOutput: TypeAlias = "str | os.PathLike[str] | Directory"
"""The folder of a batch query's answers."""

_SPARK_WRITES = "let Spark write the answers, which it can do in any form: sp.ask(...).write"
_FOR_ALL = "name a folder that all machines reach, such as one in HDFS"


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """The folder that the answers of a batch query over `rows` are written to, and what happens if it has files."""

    path: str
    if_exists: IfExists
    rows: DataFrame

    @classmethod
    def of(
        cls, output: BatchOutput | None, if_exists: IfExists, rows: DataFrame, condition: str | None
    ) -> AnswerFiles | None:
        """Return the user's arguments `output` and `if_exists` for a query over `rows`; None without an output.

        condition   a condition on answers that only Spark evaluates

        Raises ConfigError, naming the argument, if workers cannot write the answers there.
        """
        check_if_exists(if_exists)
        if output is None:
            if if_exists != "error":
                raise ConfigError("if_exists needs output=, the folder of the answers")
            return None
        path = _folder(output)
        if over_connect(rows.sparkSession):
            raise ConfigError(
                f"output: over Spark Connect this process need not reach the files of the server's workers: {_SPARK_WRITES}"
            )
        if condition is not None:
            raise ConfigError(
                f"having={shortened(condition)!r} is evaluated by Spark, and with output= it has no answers: write comparisons "
                f"of columns, numbers and texts, which workers evaluate, or {_SPARK_WRITES}"
            )
        return cls(path, if_exists, rows)

    def write(self, stage: LastStage) -> DataFrame:
        """Answer the query, and return its files as a DataFrame; an error leaves the folder as it was."""
        for field in stage.schema:
            if _is_void(field.type):
                raise ConfigError(
                    f"output: column {field.name!r} has no values of any type, which parquet files for Spark cannot hold: drop it"
                )
        place = place_of(self.path)
        if self.if_exists == "overwrite":
            _check_not_read(self.rows, place)
        folder = AnswerFolder.at(place, self.if_exists)
        folder.begin()
        try:
            folder.publish(_answered(stage, folder) or [_without_rows(stage, folder)])
        except BaseException:
            folder.abandon()
            raise
        spark = self.rows.sparkSession
        spark.catalog.refreshByPath(place.spark)  # a DataFrame of the replaced files may be in Spark's cache
        return spark.read.schema(stage.columns).parquet(place.spark_pattern)


@dataclass(frozen=True, slots=True)
class WriteAnswers:
    """Writes the answers of a task to a file of `folder`; yields the task's number, and the file, unless it has no rows."""

    answer: Answering
    schema: pa.Schema
    folder: DocumentStore

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answers = (
            pa.Table.from_arrays(batch.columns, schema=self.schema) for batch in self.answer(batches) if batch.num_rows
        )
        first = next(answers, None)
        if first is not None:
            if not self.folder.exists:
                raise ConfigError(f"output: this worker does not find {self.folder.root}: {_FOR_ALL}")
            name, context = _file_name(), TaskContext.get()
            self.folder.write_parquet(name, self.schema, chain([first], answers))
            self.folder.sync(name)
            yield pa.RecordBatch.from_pydict({"task": [context.partitionId() if context else 0], "file": [name]})
        keep_loaded(WriteAnswers)


def _answered(stage: LastStage, folder: AnswerFolder) -> list[str]:
    """Let the workers write the answers; return the files, in the order of tasks."""
    write = WriteAnswers(stage.answer, stage.schema, folder.written)
    try:
        reports = partials_ahead(stage).mapInArrow(write, "task long, file string").collect()
    except (PySparkException, Py4JJavaError) as error:
        raise folder.lost(error) from error
    files = [report.file for report in sorted(reports, key=lambda report: int(report.task))]
    missing = set(files) - set(folder.written.names())
    if missing and folder.written.exists:
        raise ConfigError(
            f"output: workers have written {len(missing)} files, which this process does not find in {folder.written.root}: "
            f"{_FOR_ALL}"
        )
    return files


def _without_rows(stage: LastStage, folder: AnswerFolder) -> str:
    """Write a file without rows, from which readers of the folder know the columns; return it."""
    name = _file_name()
    try:
        folder.written.write_parquet(name, stage.schema, [stage.schema.empty_table()])
        folder.written.sync(name)
    except OSError as error:
        raise folder.lost(error) from error
    return name


def _check_not_read(rows: DataFrame, place: Location) -> None:
    """Raise ConfigError if the query reads the folder that its answers would replace: its rows would be gone."""
    for file in files_of(rows):
        read = Location.of(unquote(file)).resolved()  # Spark writes URIs with escapes
        if is_inside(read, place):
            raise ConfigError(f"output: the query reads {read}, which its answers would replace: name another folder")


def is_inside(file: Location, folder: Location) -> bool:
    """Return whether a file is in a folder, by their names; one without a host is on the default host."""
    hosts = {file.authority, folder.authority} - {""}
    return file.scheme == folder.scheme and len(hosts) < 2 and file.path.startswith(f"{folder.path}/")


def _folder(output: BatchOutput) -> str:
    """Return the path of the folder; raise ConfigError for any other sink, and for what only a stream writes."""
    if isinstance(output, str | os.PathLike):
        return os.fspath(output)
    if not isinstance(output, Directory):
        raise ConfigError(f"output: a batch query writes a folder of parquet files, got {output!r}: {_SPARK_WRITES}")
    if output.format != "parquet" or output.one_file or output.roll is not None:
        got = "one_file=True" if output.one_file else "roll=" if output.roll else f"format {output.format!r}"
        raise ConfigError(f"output: the tasks of a batch query write a parquet file each, got {got}: {_SPARK_WRITES}")
    return output.path


def _is_void(kind: pa.DataType) -> bool:
    """Return whether values of a type, or parts of them, are null by their type."""
    if pa.types.is_struct(kind):
        return any(_is_void(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _is_void(kind.key_type) or _is_void(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _is_void(kind.value_type)
    return bool(pa.types.is_null(kind))


def _file_name() -> str:
    """Return a name that no other attempt of a task has."""
    return f"{uuid.uuid4().hex}.parquet"
