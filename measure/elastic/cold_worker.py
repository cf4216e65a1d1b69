"""A new Python process that lifts rows once, as the first Python worker of a new executor does.

    python -m measure.elastic.cold_worker "skyline"

It imports no more than a task needs, and prints a line of JSON: processor seconds up to the end of the first lift, and
those of a later lift of as many rows.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from skypane.operators.query import Query

ROWS: Final = 100_000
NAMES: Final = ("skyline", "sums by key")


def query_of(name: str) -> Query:
    """Return a query by its name."""
    import skypane as sp  # noqa: PLC0415 - as a worker does, when it reads the task

    return (
        sp.Skyline("a MIN, b MIN, c MIN") if name == NAMES[0] else sp.Aggregate("key", n=sp.count(), total=sp.sum("a"))
    )


def rows(number: int = ROWS) -> pa.Table:
    """Return rows for all queries."""
    import numpy as np  # noqa: PLC0415

    rng = np.random.default_rng(5)
    return pa.table({**{name: rng.random(number) for name in "abc"}, "key": rng.integers(0, 1_000, number)})


def lifted(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Lift rows in a task of Spark, whatever it receives; yield the rows of the partial as a number."""
    from skypane.runtime.spark.engine import plq  # noqa: F401, PLC0415 - loads all modules that a task needs

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"rows": [query_of(name).lift(rows()).num_rows]})


def main(name: str) -> None:
    """Lift twice."""
    list(lifted(iter([]), name))
    first = time.process_time()
    table, query = rows(), query_of(name)
    began = time.process_time()
    query.lift(table)
    print(json.dumps({"first": first, "later": time.process_time() - began}))


if __name__ == "__main__":
    main(sys.argv[1])
