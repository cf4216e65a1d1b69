"""How many rows a job reads, and which of them could enter a window: the check of a job file that was just written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

from skypane.jobs.building import frame, session
from skypane.jobs.job_file import JobFile
from skypane.naming import backticked
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.types import SkypaneError
from skypane.wording import count, counted

MOST: Final = 100_000
"""Rows that are read, at most."""


class FirstRows(NamedTuple):
    """The rows that were read, those that come in, and the numbers of the others by what they lack."""

    rows: int
    come_in: int
    lacking: Mapping[str, int]

    def __str__(self) -> str:
        """Return them as one sentence."""
        if not self.rows:
            return "the job reads no rows: its files are empty"
        if not self.lacking:
            return f"the job reads {counted(self.rows, 'rows')}, and all come in"
        reasons = ", ".join(f"{count(number)} {reason}" for reason, number in self.lacking.items())
        return f"the job reads {counted(self.rows, 'rows')}, and {count(self.come_in)} come in; the others: {reasons}"


def first_rows(job: JobFile) -> FirstRows:
    """Return how a job reads the first rows that are there; raise SkypaneError if Spark cannot read them."""
    try:
        rows = frame(job.model_copy(update={"mode": "batch"}), session(job)).limit(MOST)
        lacks = _lacks(job, rows)
        numbers = rows.agg(
            sf.count("*"),
            sf.count_if(~reduce(or_, lacks.values())),
            *map(sf.count_if, lacks.values()),
        ).collect()[0]
    except (PySparkException, Py4JJavaError) as error:
        raise SkypaneError(f"Spark cannot read the rows of the job: {cause(error)}") from error
    found = zip(lacks, numbers[2:], strict=True)
    return FirstRows(numbers[0], numbers[1], {reason: number for reason, number in found if number})


def _lacks(job: JobFile, rows: DataFrame) -> dict[str, Column]:
    """Return what keeps a row out of the windows, by the reason that the late sink would state."""
    (one,) = job.each_query
    time = () if one.window is None or one.window.time is None else (one.window.time,)
    kinds = {field.name: field.dataType for field in rows.schema}
    needed = [name for name in dict.fromkeys((*time, *one.build().required)) if name in kinds]
    return {f"null {name}": _is_lacking(name, isinstance(kinds[name], DoubleType | FloatType)) for name in needed}


def _is_lacking(name: str, floating: bool) -> Column:
    column = sf.col(backticked(name))
    return column.isNull() | sf.isnan(column) if floating else column.isNull()
