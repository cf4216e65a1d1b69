"""The classes of table functions, as PySpark calls them: when a call is planned, with rows, and after the last row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.udtf import AnalyzeArgument

from skypane.runtime.spark.spark_schema import from_spark
from skypane.runtime.spark.sql.analysis import Analyzed, analyzed
from skypane.runtime.spark.sql.called_query import sql_name
from skypane.runtime.spark.sql.partition_answers import Answering, Answers
from skypane.runtime.spark.sql.row_transfer import ROWS, columns_of, rows_of
from skypane.types import SkypaneError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
"""The environment variable by which PySpark leaves the trace out of an error that it sends to Java."""


def handler(kind: str) -> type:
    """Return the class of the table function of a query."""

    class Handler(_TableFunction):
        name = sql_name(kind)

        @staticmethod
        def analyze(*arguments: AnalyzeArgument, **named: AnalyzeArgument) -> Analyzed:
            with _in_one_line(sql_name(kind)):
                return analyzed(kind, arguments, named)

    return Handler


class _TableFunction:
    """Answers the rows of a partition; eval() gets batches of columns, or, from Spark 4.0, one row."""

    name: str

    def __init__(self, planned: Analyzed) -> None:
        assert planned.answering is not None  # noqa: S101 - the planned call has it
        self._answering: Answering = planned.answering
        self._answers: Answers | None = None
        self._rows: list[Row] = []
        self._singly = False

    def eval(self, *arguments: Any, **named: Any) -> None:
        for argument in (*arguments, *named.values()):
            if isinstance(argument, pa.RecordBatch):
                self._absorb(argument)
            elif isinstance(argument, Row):
                self._singly = True
                self._rows.append(argument)
                if len(self._rows) >= ROWS:
                    self._gather()

    def terminate(self) -> Iterator[Any]:
        self._gather()
        if self._answers is None:
            return
        with _in_one_line(self.name):
            for batch in self._answers.answers():
                if self._singly:
                    yield from rows_of(batch)
                else:
                    yield batch

    def _gather(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            with _in_one_line(self.name):
                batch = columns_of(rows, self._answering.schema)
            self._absorb(batch)

    def _absorb(self, batch: pa.RecordBatch) -> None:
        with _in_one_line(self.name):
            for same in from_spark([batch.select(self._answering.schema.names)]):
                if self._answers is None:
                    self._answers = self._answering.begin(same.schema)
                self._answers.absorb(same)


@contextmanager
def _in_one_line(name: str) -> Iterator[None]:
    """Name the function in an error of skypane, of which Java gets the one line, and no trace; the process ends with it."""
    try:
        yield
    except SkypaneError as error:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise type(error)(f"{name}: {error}") from None
