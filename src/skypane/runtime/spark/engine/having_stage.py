"""The answers of a batch for which a condition is true that Spark evaluates, on their way from the workers to the sink.

Spark gets the columns that the condition reads, each row with its number, and gives back the numbers of the rows that
meet it. The rows themselves do not move, and keep the types that they have:

    tables of the driver   a DataFrame of their rows -> numbers -> these rows are taken
    files of the workers   one job, a task a file: its rows -> Spark -> numbers -> these rows are written to a new file
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from skypane.operators.aggregates.spark_having import SparkHaving
from skypane.operators.stay_columns import FROM, START, TO, are_stays, micros_of
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.wlq import file_name
from skypane.runtime.spark.having_by_spark import refusal
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import IntArray
from skypane.windows import Windows

_CAUSED: Final = re.compile(r"\[[A-Z][A-Z0-9_.]*\] [^\n]*SQLSTATE: (?:22|42|P0)\w*")
"""The line of an error that the condition causes: of values out of range, names that are gone, errors that it raises itself."""


def kept(spark: SparkSession, having: SparkHaving, windows: Windows, answers: BatchRows, prefix: str) -> BatchRows:
    """Return the answers of a batch that meet a condition, with the numbers of rows that are left of each window.

    prefix   the start of the names of files

    Raises ConfigError, naming the condition, if Spark cannot evaluate it on these answers.
    """
    if not answers.row_count:
        return answers
    with _named(having):
        if answers.store is None:
            return _of_tables(spark, having, windows, answers)
        return _of_files(spark, having, windows, answers, answers.store, prefix)


@contextmanager
def _named(having: SparkHaving) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # of a collection of Arrow, Spark does not convert each error
        line = _CAUSED.search(str(error))
        if line is None:
            raise
        raise refusal(having.text, line[0]) from error


def _of_tables(spark: SparkSession, having: SparkHaving, windows: Windows, answers: BatchRows) -> BatchRows:
    rows, place = answers.table(), RowPlace.beside(answers.schema)
    read = rows.select(list(_read(having, answers.schema))).combine_chunks()
    read = read.append_column(place.row, pa.array(np.arange(rows.num_rows)))
    frame = spark.createDataFrame(read, spark_schema(read.schema))
    numbers = _meeting(frame, having).select(place.row).toArrow().column(0).to_numpy()
    meets = np.zeros(rows.num_rows, np.bool_)
    meets[numbers] = True
    rows = rows.filter(pa.array(meets))
    known = tuple(window for window, _ in answers.windows)
    left = _rows_by_window(rows, windows, known)
    return replace(answers, row_count=rows.num_rows, windows=tuple(zip(known, left, strict=True)), tables=(rows,))


def _of_files(
    spark: SparkSession, having: SparkHaving, windows: Windows, answers: BatchRows, store: DocumentStore, prefix: str
) -> BatchRows:
    place, known = RowPlace.beside(answers.schema), tuple(window for window, _ in answers.windows)
    files = WrittenAnswers(store, answers.files, answers.schema)
    tasks = spark.range(0, len(answers.files), 1, len(answers.files))
    read = ReadStage(files, _read(having, answers.schema), place)
    rows = _meeting(tasks.mapInArrow(read, spark_schema(read.schema)), having).select(place.file, place.row)
    written = rows.mapInArrow(KeepStage(files, windows, known, prefix), "report string").collect()
    reports = sorted((json.loads(row.report) for row in written), key=lambda report: report["file"])
    left = Counter[int]()
    for report in reports:
        left.update(dict(zip(known, report["windows"], strict=True)))
    store.remove(answers.files)
    return replace(
        answers,
        row_count=sum(report["rows"] for report in reports),
        windows=tuple((window, left[window]) for window in known),
        files=tuple(report["name"] for report in reports),
    )


def _meeting(rows: DataFrame, having: SparkHaving) -> DataFrame:
    """Return the rows for which the condition is true."""
    return rows.where(having.text if having.column is None else cast("Column", having.column))


def _read(having: SparkHaving, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns that Spark gets, at least one: a batch without columns has no rows."""
    return tuple(name for name in schema.names if name in having.reads) or (schema.names[0],)


def _rows_by_window(rows: pa.Table, windows: Windows, known: Iterable[int]) -> list[int]:
    """Return the number of rows of each window of `known` in answers, which may be stays."""
    first, last = (FROM, TO) if are_stays(rows.schema) else (START, START)
    begins, ends = (np.sort(_window_of(rows.column(name), windows)) for name in (first, last))
    numbers = np.fromiter(known, np.int64)
    counts = np.searchsorted(begins, numbers, "right") - np.searchsorted(ends, numbers, "left")
    return [int(one) for one in counts]


def _window_of(starts: pa.ChunkedArray, windows: Windows) -> IntArray:
    numbers: IntArray = (micros_of(starts) - windows.offset) // windows.slide
    return numbers


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The names of the columns of a row's place: its file, and its number in the file or in the table."""

    file: str
    row: str

    @classmethod
    def beside(cls, schema: pa.Schema) -> RowPlace:
        """Return names that no column of `schema` has; upper and lower case are the same to Spark."""
        taken = {name.lower() for name in schema.names}
        file, row = (next(name for name in _names(base) if name not in taken) for base in ("file", "row"))
        return cls(file, row)


def _names(base: str) -> Iterator[str]:
    return (base + "_" * more for more in count())


@dataclass(frozen=True, slots=True)
class WrittenAnswers:
    """The files of a batch's answers; travels to the workers."""

    store: DocumentStore
    names: tuple[str, ...]
    schema: pa.Schema

    def tables(self, file: int, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of a file in order, some at a time, each time with the number of the first."""
        schema, first = pa.schema([self.schema.field(name) for name in columns]), 0
        with self.store.open_input(self.names[file]) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(columns=list(columns)):
                yield first, pa.Table.from_batches([batch]).select(columns).cast(schema)
                first += batch.num_rows


@dataclass(frozen=True, slots=True)
class ReadStage:
    """Reads the columns of a condition, and the places of the rows, in the files whose numbers it receives."""

    files: WrittenAnswers
    columns: tuple[str, ...]
    place: RowPlace

    @property
    def schema(self) -> pa.Schema:
        """The schema of what it yields."""
        places = [pa.field(name, pa.int64()) for name in (self.place.file, self.place.row)]
        return pa.schema([*(self.files.schema.field(name) for name in self.columns), *places])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in (index for batch in batches for index in batch.column(0).to_pylist()):
            for first, rows in self.files.tables(file, self.columns):
                numbers = np.arange(first, first + rows.num_rows)
                places = [pa.array(np.full(rows.num_rows, file)), pa.array(numbers)]
                yield from pa.Table.from_arrays([*rows.columns, *places], schema=self.schema).to_batches()
        keep_loaded(ReadStage)


@dataclass(frozen=True, slots=True)
class KeepStage:
    """Writes the rows whose places it receives to new files; yields a report of each file that has such rows.

    known   the windows of the batch
    """

    files: WrittenAnswers
    windows: Windows
    known: tuple[int, ...]
    prefix: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept_rows: dict[int, list[IntArray]] = {}
        for batch in batches:
            files, numbers = (column.to_numpy() for column in batch.columns)
            for file in np.unique(files).tolist():
                kept_rows.setdefault(file, []).append(numbers[files == file])
        for file, parts in kept_rows.items():
            yield pa.RecordBatch.from_pydict(
                {"report": [json.dumps(self._written(file, np.sort(np.concatenate(parts))))]}
            )
        keep_loaded(KeepStage)

    def _written(self, file: int, numbers: IntArray) -> dict[str, Any]:
        """Write the rows of these numbers in a file; return the new file, its rows, and its rows by window."""
        name, left = file_name(self.prefix, file), np.zeros(len(self.known), np.int64)

        def tables() -> Iterator[pa.Table]:
            for first, rows in self.files.tables(file, self.files.schema.names):
                begin, end = np.searchsorted(numbers, [first, first + rows.num_rows])
                meeting = rows.take(pa.array(numbers[begin:end] - first))
                left[:] += _rows_by_window(meeting, self.windows, self.known)
                yield meeting

        self.files.store.write_parquet(name, self.files.schema, tables())
        return {"file": file, "name": name, "rows": len(numbers), "windows": left.tolist()}
