"""Answers on the terminal."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

from pyspark.sql import DataFrame, SparkSession

from skypane.naming import printable
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink
from skypane.wording import counted


@dataclass(frozen=True)
class Console(Sink):
    """Prints the answers of each micro-batch, at most `rows` rows.

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=sp.Console(rows=5)
    ... )
    """

    rows: int = 20

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        if answers.row_count:
            what = (
                f"batch {batch_id}: {counted(len(answers.windows), 'windows')}, {counted(answers.row_count, 'rows')}\n"
            )
            show(answers.dataframe(spark), self.rows, what)


def show(frame: DataFrame, rows: int, what: str = "") -> None:
    """Print the first rows of a DataFrame as Spark does, with control characters as escapes, after a text."""
    shown = StringIO()
    with redirect_stdout(shown):
        frame.show(rows, truncate=False)
    print(f"{what}{printable(shown.getvalue())}", end="")  # noqa: T201 - it is for the console
