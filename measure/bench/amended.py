"""The cost of amended and early answers: bytes kept for each closed pane, and the time of a window that is answered again.

    python -m measure.bench.amended [--quick]

Each pane of a minute has 10,000 rows. The windows of an hour of panes are answered first as a stream answers them, one
after the other by a worker that shares merges. Then one late row enters a pane, which is merged with it, and the
windows that hold the pane are answered again by a worker that has no merges yet, as the engine does in the driver.

Early answers are those of all open windows when the last pane of the oldest of them has come.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.results.record import Found, Table
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery, WindowWorker
from skypane.runtime.table_batching import encoded
from skypane.windows import Windows

PAGE = "amended-answers.md"
QUERIES: dict[str, Query] = {
    "skyline, 3 criteria": sp.Skyline("a MIN, b MIN, c MIN"),
    "skyline, 3 criteria, by 100 keys": sp.Skyline("a MIN, b MIN, c MIN", by="key"),
    "top 10": sp.TopK(10, "a + b"),
    "count, sum, max by 100 keys": sp.Aggregate("key", n=sp.count(), total=sp.sum("a"), most=sp.max("b")),
    "count, sum, max by 10,000 keys": sp.Aggregate("many", n=sp.count(), total=sp.sum("a"), most=sp.max("b")),
}
LENGTHS = ("5 minutes", "1 hour")
HEAD = (
    "query",
    "window",
    "KiB kept per pane",
    "CPU ms, first answer",
    "windows that hold a row",
    "CPU ms, each answered again",
)


EARLY_WINDOWS = (("5 minutes", "5 minutes"), ("5 minutes", "1 minute"), ("1 hour", "1 minute"))
EARLY_HEAD = ("query", "window", "slide", "windows answered", "CPU ms, all of them")


def rows_of(rng: np.random.Generator, count: int) -> pa.Table:
    """Return independent uniform criteria, a key of 100 and one of 10,000."""
    numbers = {name: rng.random(count) for name in "abc"}
    return pa.table({**numbers, "key": rng.integers(0, 100, count), "many": rng.integers(0, 10_000, count)})


def answered(worker: WindowWorker, tasks: list[WindowTask[pa.Table]]) -> Iterator[float]:
    """Answer windows one after the other; yield the CPU seconds of each."""
    for task in tasks:
        began = time.process_time()
        worker.answer(task, lambda partial: partial)
        yield time.process_time() - began


def again(query: WindowQuery, panes: OpenPanes[pa.Table], late: pa.Table, pane: int) -> tuple[float, int]:
    """Return the CPU seconds in which a late row amends answers, and the number of its windows."""
    began = time.process_time()
    merged = query.query.combine([*panes.panes[pane], query.query.lift(late)])
    tasks = panes.replace([(pane, merged)]).tasks(query.windows.windows_of(pane))
    count = len(list(query.worker().answers(tasks, lambda partial: partial)))
    return time.process_time() - began, count


def measured(name: str, length: str, rows: int, repeats: int, timed: Callable[[float], str]) -> list[str]:
    """Return the line of a case."""
    rng, windows = np.random.default_rng(1), Windows.of(length, "1 minute")
    query, span = WindowQuery(QUERIES[name], windows, None), windows.panes_per_window
    partials = [query.query.lift(rows_of(rng, rows)) for _ in range(3 * span)]
    panes = OpenPanes[pa.Table].empty(windows).add(enumerate(partials))
    tasks = panes.tasks(range(2 * span))
    first = list(answered(query.worker(), tasks))[span:]
    late = [again(query, panes, rows_of(rng, 1), span + number % span) for number in range(repeats)]
    kept = sum(encoded(partial).size for partial in partials) / len(partials)
    return [
        name, length, f"{kept / 1024:,.1f}", timed(sum(first) / len(first)), str(late[0][1]),
        timed(median(seconds / count for seconds, count in late)),
    ]  # fmt: skip


def early(name: str, length: str, slide: str, rows: int, repeats: int) -> list[str]:
    """Return the line of early answers; a partial is of the rows of a minute, as a micro-batch brings them."""
    rng, windows = np.random.default_rng(1), Windows.of(length, slide)
    query = WindowQuery(QUERIES[name], windows, None, versioned=True, early=True)
    starts = range(0, windows.length, 60_000_000)
    lifted = [(windows.pane_at(start), query.query.lift(rows_of(rng, rows))) for start in starts]
    panes = OpenPanes[pa.Table].empty(windows).add(lifted)
    tasks = panes.tasks(window for window in panes.unanswered() if windows.bounds(window)[1] >= windows.length)
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        count = len(list(query.worker().answers(tasks, lambda partial: partial)))
        seconds.append(time.process_time() - began)
    return [name, length, slide, str(count), f"{1_000 * median(seconds):,.1f}"]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    quick = parser.parse_args(argv).quick
    rows, repeats = (500, 2) if quick else (10_000, 11)
    lines = [
        measured(name, length, rows, repeats, lambda seconds: f"{1_000 * seconds:,.2f}")
        for name in QUERIES
        for length in LENGTHS
    ]
    first = [early(name, *shape, rows, repeats) for name in QUERIES for shape in EARLY_WINDOWS]
    tables = [Table(PAGE, "costs", HEAD, lines), Table(PAGE, "early-costs", EARLY_HEAD, first)]
    print(*(table.text for table in tables), sep="\n")
    return [*tables]


if __name__ == "__main__":
    main()
