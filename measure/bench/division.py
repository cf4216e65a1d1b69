"""The division of the window-level work of aggregates: by runs of windows, as in the engine, or by keys, as in paper 3.

    python -m measure.bench.division [--quick]

Rows are those of measure.bench.aggregates, lifted into panes. Then all windows of two hours, or only the last full
ones, are answered by `n` workers, one after the other in this process. The CPU seconds of the slowest worker are the
time that n parallel workers would take; the sum is the total cost. Keys are divided by hash, by the ring, or by the
ring with the 100 most frequent keys cut into sub-keys. The states of a sub-key's panes are on several workers and are
merged at the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from measure.bench.aggregates import QUERY, Case
from measure.results.record import Found, Table
from skypane.control.keys import FrequencyAware, HashRing, KeyPlan, SpaceSaving, basic, load_balance
from skypane.control.window_division import fixed_division
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.window_query import WindowQuery
from skypane.runtime.spark.engine.wlq import sizes_of
from skypane.types import IntArray

LAST = 10
"""Windows of a batch of a stream."""
_ZIPF, _HALF = Case(1_000_000, 16_384, "1 minute", zipf=True), Case(1_000_000, 16_384, "1 minute", hot=0.5)
_MANY = Case(2_000_000, 1_000_000, "10 minutes")
CASES = (
    *((case, n, last) for case in (_ZIPF, _HALF) for n in (2, 8) for last in (None, LAST)),
    (_MANY, 2, None),
    (_MANY, 2, 1),
)
"""Rows, workers, and how many of the last full windows; None: all."""


@dataclass(frozen=True, eq=False)
class Held:
    """A partial, and its number of rows, as the engine's references tell it."""

    table: pa.Table

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)


Tasks = Sequence[WindowTask[Held]]
Route = Callable[[IntArray], IntArray]


def lifted(case: Case) -> tuple[pa.Table, Tasks]:
    """Return the rows, and all windows with the partials of their panes."""
    rows, windows = case.table(), case.windows
    panes = windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    starts = np.flatnonzero(np.concatenate(([True], np.diff(panes) != 0)))
    partials = QUERY.lift_panes(rows, starts.tolist())
    empty: OpenPanes[Held] = OpenPanes.empty(windows)
    held = empty.add(zip(panes[starts].tolist(), map(Held, partials), strict=True))
    return rows, list(held.all_windows())


def answered(case: Case, tasks: Tasks) -> tuple[float, int]:
    """Return the CPU seconds of a fresh worker that answers these windows, and its rows."""
    worker, began = WindowQuery(QUERY, case.windows, "UTC").worker(), time.process_time()
    rows = sum(worker.answer(task, lambda held: held.table).rows.num_rows for task in tasks)
    return time.process_time() - began, rows


def by_windows(case: Case, tasks: Tasks, n: int) -> tuple[list[float], float]:
    """Return the CPU seconds of each worker, and those of dividing: none."""
    pieces = fixed_division(sizes_of(tasks), n).pieces  # type: ignore[arg-type] # only the rows of a partial are used
    return [answered(case, tasks[piece.begin : piece.end])[0] for piece in pieces], 0.0


def by_keys(case: Case, tasks: Tasks, n: int, route: Route) -> tuple[list[float], float]:
    """Return the CPU seconds of each worker, and those of dividing partials among them and merging keys that several have."""
    began = time.process_time()
    panes = {pane: partials[0].table for task in tasks for pane, partials in task.panes}
    parts: dict[int, list[Held]] = {}
    for pane, partial in panes.items():
        nodes = route(partial["key"].to_numpy())
        order = np.argsort(nodes, kind="stable")
        edges = np.searchsorted(nodes[order], np.arange(n + 1))
        ordered = partial.take(pa.array(order))
        parts[pane] = [Held(ordered.slice(a, b - a)) for a, b in pairwise(edges.tolist())]
    divided = time.process_time() - began
    seconds = [
        answered(
            case,
            [replace(task, panes=tuple((pane, (parts[pane][node],)) for pane, _ in task.panes)) for task in tasks],
        )[0]
        for node in range(n)
    ]
    return seconds, divided


def plan_of(keys: IntArray, n: int, most: int) -> KeyPlan:
    """Return where keys go, as the rows' frequencies say."""
    sketch = SpaceSaving(1_000)
    return FrequencyAware(most).decide(sketch.observe(sketch.init(), keys), HashRing(tuple(range(n))))


def measure(case: Case, n: int, last: int | None) -> list[list[str]]:
    """Return the lines of one case."""
    rows, tasks = lifted(case)
    tasks = tasks if last is None else tasks[-last - case.windows.overlap : -case.windows.overlap]
    keys = rows["key"].to_numpy()
    routes: dict[str, Route] = {
        "keys, hash": lambda found: basic(found, n),
        "keys, ring": plan_of(keys, n, 0).route,
        "keys, ring, 100 cut": plan_of(keys, n, 100).route,
    }
    by_windows(case, tasks, n)  # warm
    lines = []
    for way in ("runs of windows", *routes):
        route = routes.get(way)
        tries = [by_windows(case, tasks, n) if route is None else by_keys(case, tasks, n, route) for _ in range(3)]
        seconds, divided = min(tries, key=lambda one: sum(one[0]))
        busy = np.array(seconds)
        in_rows = f"{load_balance(route(keys), n):.2f}" if route is not None else "0.00"
        figures = [in_rows, f"{busy.std() / busy.mean():.2f}"]
        costs = [f"{value * 1e3:,.0f}" for value in (busy.max(), busy.sum(), divided)]
        lines.append([case.named, f"{len(tasks)}", f"{n}", way, *figures, *costs])
    return lines


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small case")
    arguments = parser.parse_args(argv)
    asked = [(Case(20_000, 1_000, "1 minute", zipf=True), 2, LAST)] if arguments.quick else CASES
    lines = []
    for case, n, last in asked:
        lines += measure(case, n, last)
        print(*lines[-4:], sep="\n", flush=True)
    head = [
        "keys",
        "windows",
        "workers",
        "divided by",
        "balance of rows",
        "of seconds",
        "slowest, ms",
        "all, ms",
        "dividing, ms",
    ]
    return [Table("bench-aggregates.md", "division", head, lines)]


if __name__ == "__main__":
    main()
