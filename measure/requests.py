"""Requests of a checkpoint and an output in an object store: at a start, and in a small batch, by kind.

    python -m measure.requests [--docs docs] [--batches N] [--milliseconds N]

A server of S3's API runs on this machine, behind a proxy that counts. The engine runs without Spark; one task lifts 40 rows
a batch, which complete a window. With --milliseconds the proxy waits so long before each request, and the table has the
seconds of a batch.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from tests.chaos.driver import Stream
from tests.chaos.naive import SCHEMA, SLIDE, START, rows
from tests.servers import fault_proxy, s3
from tests.servers.fault_proxy import FaultProxy
from tests.stores.streams import BucketStream

from measure.tables import markdown_table, replace_between
from skypane.control.parallelism import Workers
from skypane.runtime.spark.engine.reading_order import UNIT
from skypane.runtime.spark.engine.shell import Engine
from skypane.testing import Session

PAGE: Final = "places.md"
MARK: Final = "requests"
KINDS: Final = ("PUT", "POST", "GET", "HEAD", "LIST")
ROWS: Final = 40


class Case(NamedTuple):
    """A query of tests/chaos, and whether its rows come in order, or late, far ahead and malformed, with a late sink."""

    scenario: str
    in_order: bool


CASES: Final = {
    "skyline, rows in order": Case("skyline", in_order=True),
    "aggregates, rows in order": Case("sums", in_order=True),
    "skyline, with late, held and malformed rows in each batch": Case("skyline", in_order=False),
    "the same, amended": Case("amended", in_order=False),
}


class Run(NamedTuple):
    """The requests of a start and of each batch after the first, and the seconds of these batches."""

    start: Counter[str]
    batches: list[Counter[str]]
    seconds: list[float]


def measured(case: Case, batches: int, delay: float) -> Run:
    """Run a stream in a new bucket."""
    with (
        tempfile.TemporaryDirectory() as folder,
        s3.running() as port,
        fault_proxy.before(port) as (proxy, own),
        s3.connected(own),
    ):
        proxy.delay = delay
        table = rows(1, batches)
        stream = BucketStream(case.scenario, Path(folder), _in_order(table) if case.in_order else table, 0, -1)
        return _run(stream, proxy, batches, late=not case.in_order)


def _in_order(table: pa.Table) -> pa.Table:
    """Return as many rows, none of which is rejected."""
    count = len(table)
    times = pa.array(START + np.arange(count) * (SLIDE // ROWS), SCHEMA.field("ts").type)
    prices = pa.array(np.arange(count) % 12, SCHEMA.field("price").type)
    columns = {"ts": times, "price": prices}
    return pa.table([columns.get(name, table[name]) for name in table.column_names], schema=table.schema)


def _run(stream: Stream, proxy: FaultProxy, batches: int, *, late: bool) -> Run:
    session = Session()
    engine = Engine(stream.setting(random.Random(0), late=late), Workers(1, 1))
    start, counted, seconds = _counted(proxy, 0), [], []
    rows = stream.rows.append_column(UNIT, pa.array(np.zeros(len(stream.rows), np.int64)))
    for number in range(batches):
        before, began = len(proxy.requests), time.perf_counter()
        engine(session.createDataFrame(rows.slice(number * ROWS, ROWS)), number)
        counted.append(_counted(proxy, before))
        seconds.append(time.perf_counter() - began)
    return Run(start, counted[1:], seconds[1:])


def _counted(proxy: FaultProxy, since: int) -> Counter[str]:
    return Counter(request.kind for request in proxy.requests[since:])


def cells(name: str, run: Run, *, timed: bool) -> list[list[str]]:
    """Return the rows of a table: the start, the median of the batches, and the batch with the most requests."""
    seconds = [f"{1000 * median(run.seconds):.0f}"] if timed else []
    most = max(run.batches, key=lambda batch: batch.total())
    middle = [f"{median(batch[kind] for batch in run.batches):.0f}" for kind in KINDS]
    return [
        [f"{name}: start", *(str(run.start[kind]) for kind in KINDS), *("" for _ in seconds)],
        [f"{name}: a batch, median", *middle, *seconds],
        [f"{name}: the batch with most", *(str(most[kind]) for kind in KINDS), *("" for _ in seconds)],
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it into the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--milliseconds", type=float, default=0.0)
    given = parser.parse_args(arguments)
    lines = [
        line
        for name, case in CASES.items()
        for line in cells(name, measured(case, given.batches, given.milliseconds / 1000), timed=given.milliseconds > 0)
    ]
    head = ["", *KINDS, *([f"ms a batch, at {given.milliseconds:g} ms a request"] if given.milliseconds > 0 else [])]
    table = markdown_table(head, lines)
    print(table)
    if given.docs:
        replace_between(given.docs / PAGE, MARK, table)


if __name__ == "__main__":
    main()
