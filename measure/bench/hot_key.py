"""Rows and seconds of the largest task where one key has most rows: as the engine divides keys, by hash, with cut keys.

    python -m measure.bench.hot_key [--quick] [--rows N] [--rounds N]

A window of an hour with five panes is answered; its keys follow Zipf's law, or one of them has a half or nine tenths of
the rows. The ways (measure.bench.key_division) run in turn, tasks one after the other in this process, and CPU clocks
measure them. The critical path is the slowest task of each step: lift, merge, answer. What it costs to move rows or
partials is not in it. All ways must give the same answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.bench.aggregates import Case
from measure.bench.key_division import WAYS, Divided, clocked, hashed, plan_of
from measure.results.record import Found, Table
from skypane.control.keys import basic
from skypane.operators.query import Query
from skypane.types import IntArray

PAGE: Final = "bench-aggregates.md"
KEYS: Final = 16_384
SLIDE: Final = "12 minutes"
TASKS: Final = (4, 16, 64)
USERS: Final = 1_000_000


def rises(rows: pa.Table) -> float:
    """Return by how much a value has risen in all."""
    return float(np.diff(rows["x"].to_numpy()).clip(0.0).sum())


QUERIES: Final[dict[str, Query]] = {
    "count, sum": sp.Aggregate("key", n=sp.count(), total=sp.sum("x")),
    "approx_count_distinct": sp.Aggregate("key", n=sp.approx_count_distinct("user")),
    "top 10": sp.TopK(10, "x", by="key"),
    "skyline, 2 criteria": sp.Skyline("x MIN, y MIN", by="key"),
    "count_distinct": sp.Aggregate("key", n=sp.count_distinct("user")),
    "collect_list": sp.Aggregate("key", all=sp.collect_list("x", order="at")),
    "in_order": sp.Aggregate("key", n=sp.in_order(rises, "x", returns=pa.float64(), order="at")),
}
UNBOUNDED: Final = ("count_distinct", "collect_list", "in_order")
"""Functions whose states hold all values of a key."""
IN_PARTS: Final = "in parts"

ROWS_HEAD: Final = [
    "keys", "tasks", "as read", "hash", "ring", "ring, 100 cut", "keys cut, in parts", "rows of partials, as read",
    "hash, ns a row", "ring, 100 cut, ns a row",
]  # fmt: skip


def seconds_head(tasks: Sequence[int]) -> list[str]:
    """Return the head of the second table."""
    shares, paths = ([f"{what}, {n} tasks" for n in tasks] for what in ("largest share of bytes", "CPU ms"))
    return ["keys", "function", *shares, *paths, f"as read, {tasks[len(tasks) // 2]} tasks: lift + merge + answer"]


def cases(rows: int) -> tuple[Case, ...]:
    """Return the streams, with `rows` rows in the window."""
    twice = 2 * rows
    zipf = Case(twice, KEYS, SLIDE, zipf=True)
    return (zipf, Case(twice, KEYS, SLIDE, hot=0.5), Case(twice, KEYS, SLIDE, hot=0.9))


def window_of(case: Case) -> pa.Table:
    """Return the rows of one full window, in the order of time, with columns for each query."""
    table, windows = case.table(), case.windows
    panes = windows.panes_at(table["at"].cast(pa.int64()).to_numpy())
    first = int(panes.min()) + 1
    inside = (panes >= first) & (panes < first + windows.panes_per_window)
    rows = table.filter(pa.array(inside)).combine_chunks()
    rng = np.random.default_rng(11)
    return rows.append_column("y", pa.array(rng.gamma(2, 20, rows.num_rows))).append_column(
        "user", pa.array(rng.integers(0, USERS, rows.num_rows))
    )


def in_order_of_keys(answer: pa.Table) -> pa.Table:
    """Return the rows of an answer in an order that does not depend on how it was divided."""
    simple = [field.name for field in answer.schema if not pa.types.is_list(field.type)]
    return answer.combine_chunks().sort_by([(name, "ascending") for name in simple])


def divided(name: str, rows: pa.Table, case: Case, n: int) -> dict[str, Divided]:
    """Return what each way does; fail if two answers differ."""
    ways = {way: call for way, call in WAYS.items() if way != IN_PARTS or name in UNBOUNDED}
    found = {way: call(QUERIES[name], rows, case.windows, n) for way, call in ways.items()}
    answers = {way: in_order_of_keys(one.answer) for way, one in found.items()}
    differ = [way for way, answer in answers.items() if not answer.equals(answers["as read"])]
    if differ:
        raise AssertionError(f"{', '.join(differ)}: another answer than as read")
    return found


def rows_line(case: Case, rows: pa.Table, n: int) -> list[str]:
    """Return a line of the first table: the largest task's rows, the keys that are cut, and what routing costs."""
    hashes, total = hashed(rows), rows.num_rows
    plan, uncut = plan_of(hashes, n), plan_of(hashes, n, 0)
    in_turn = np.arange(total) % n
    ways = (in_turn, basic(hashes, n), uncut.route(hashes), plan.route(hashes))
    largest = [f"{np.bincount(nodes).max() / total:.1%}" for nodes in ways]
    partials = f"{_partial_rows(case, rows, in_turn) / total:.0%}"
    routing = [spent / total * 1e9 for spent in (clocked(basic, hashes, n)[0], clocked(plan.route, hashes)[0])]
    cut = f"{len(plan.parts)} in {sum(plan.parts.values()):,}"
    return [case.named, f"{n}", *largest, cut, partials, *(f"{one:.0f}" for one in routing)]


def _partial_rows(case: Case, rows: pa.Table, nodes: IntArray) -> int:
    """Return the number of distinct pairs of pane, task and key: rows of partials as read."""
    panes = case.windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    return int(np.unique(np.stack([panes, nodes, rows["key"].to_numpy()]), axis=1).shape[1])


def seconds_line(name: str, case: Case, rows: pa.Table, tasks: Sequence[int], rounds: int) -> list[str]:
    """Return the line of a query in the second table; of each way the round with the least CPU seconds."""
    least = {n: _least([divided(name, rows, case, n) for _ in range(rounds)]) for n in tasks}
    shares = [" / ".join(f"{one.share:.0%}" for one in least[n].values()) for n in tasks]
    paths = [" / ".join(f"{one.path * 1e3:,.0f}" for one in least[n].values()) for n in tasks]
    middle = least[tasks[len(tasks) // 2]]["as read"]
    steps = (middle.lifting.max(), middle.merging.max(), middle.lowering.max())
    return [case.named, name, *shares, *paths, " + ".join(f"{seconds * 1e3:,.0f}" for seconds in steps)]


def _least(runs: Sequence[dict[str, Divided]]) -> dict[str, Divided]:
    return {way: min((run[way] for run in runs), key=lambda one: one.path) for way in runs[0]}


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, one round")
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the window")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args(argv)
    rows, rounds = (4_000, 1) if arguments.quick else (arguments.rows, arguments.rounds)
    tasks = TASKS[:1] if arguments.quick else TASKS
    shares, seconds = [], []
    warm = cases(2_000)[0]
    for name in QUERIES:
        divided(name, window_of(warm), warm, 2)
    for case in cases(rows):
        window = window_of(case)
        shares += [rows_line(case, window, n) for n in tasks]
        for name in QUERIES:
            seconds.append(seconds_line(name, case, window, tasks, rounds))
            print(seconds[-1], flush=True)
    tables = [
        Table(PAGE, "hot key, rows", ROWS_HEAD, shares),
        Table(PAGE, "hot key, seconds", seconds_head(tasks), seconds),
    ]
    print(*(table.text for table in tables), sep="\n")
    return [*tables]


if __name__ == "__main__":
    main()
