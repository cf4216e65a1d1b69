"""A task that has one window, or two, merged at once or with the merges that windows share.

    python -m measure.bench.single_window [--quick]

Windows follow one another by one pane, each pane has one partial, and all panes have equally many rows. A worker that
answers one window merges all its panes at once; one that may answer others builds the merges that these share. Both ways
run alternately in this process; each figure is the least CPU time of four tries. The answers must be equal.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.bench.division import Held
from measure.bench.merged_windows import criteria, ordered, table_in
from measure.results.record import Found, Table
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery
from skypane.windows import Windows

PANES: Final = (5, 30, 60)
TRIES: Final = 4
MOST: Final = 2
"""Windows of a task, at most."""
HEAD: Final = (
    "query",
    "rows a pane",
    "panes",
    "one window: shared, ms",
    "at once, ms",
    "two: shared, ms",
    "at once, ms",
)


def uniform(rows: int, d: int, groups: int, rng: np.random.Generator) -> pa.Table:
    """Return rows of independent criteria c0, c1, ... in groups g of about equal size."""
    return pa.table({f"c{at}": rng.random(rows) for at in range(d)} | {"g": rng.integers(0, groups, rows)})


SUBJECTS: Final[dict[str, tuple[Query, int, int, int]]] = {
    "skyline, d = 4": (sp.Skyline(criteria(4)), 1_000, 4, 1),
    "skyline, d = 8": (sp.Skyline(criteria(8)), 10_000, 8, 1),
    "skyline, d = 4, 100 groups": (sp.Skyline(criteria(4), "g"), 10_000, 4, 100),
    "skyline, d = 4, 1,000 groups": (sp.Skyline(criteria(4), "g"), 10_000, 4, 1_000),
    "7-dominant, d = 8": (sp.KDominant(7, criteria(8)), 5_000, 8, 1),
    "top 100, 100 groups": (sp.TopK(100, "c0 + c1", by="g"), 10_000, 2, 100),
    "count and avg, 16,384 keys": (sp.Aggregate(("g",), n=sp.count(), mean=sp.avg("c0")), 20_000, 1, 16_384),
    "max, 16,384 keys": (sp.Aggregate(("g",), most=sp.max("c0")), 20_000, 1, 16_384),
}
"""The query, the rows of a pane, their criteria and groups."""


def line(name: str, rows: int, panes: int) -> list[str]:
    """Return a line of the table for panes of so many rows."""
    query, _, d, groups = SUBJECTS[name]
    rng = np.random.default_rng(3)
    held = [Held(query.lift(uniform(rows, d, groups, rng))) for _ in range(panes + MOST - 1)]
    tasks = [WindowTask(at, tuple((pane, (held[pane],)) for pane in range(at, at + panes))) for at in range(MOST)]
    own = WindowQuery(query, Windows(panes, 1), None)
    ways: dict[tuple[int, str], Callable[[], list[pa.Table]]] = {}
    for count in range(1, MOST + 1):
        ways[count, "shared"] = lambda some=tasks[:count]: shared(own, some)  # type: ignore[misc]
        ways[count, "at once"] = lambda some=tasks[:count]: at_once(own, some)  # type: ignore[misc]
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(TRIES):
        answers = {}
        for way, call in ways.items():
            began = time.process_time()
            answers[way] = call()
            seconds[way] = min(seconds[way], time.process_time() - began)
        for count in range(1, MOST + 1):
            assert list(map(ordered, answers[count, "shared"])) == list(map(ordered, answers[count, "at once"]))
    return [name, f"{rows:,}", f"{panes}", *(f"{one * 1e3:.1f}" for one in seconds.values())]


def shared(own: WindowQuery, tasks: Sequence[WindowTask[Held]]) -> list[pa.Table]:
    """Return the answers of a worker that may answer other windows, too."""
    return [answer.rows for answer in own.worker().answers(tasks, table_in)]


def at_once(own: WindowQuery, tasks: Sequence[WindowTask[Held]]) -> list[pa.Table]:
    """Return the answers of a worker for each window."""
    return [own.worker(windows=1).answer(task, table_in).rows for task in tasks]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small panes")
    given = parser.parse_args(argv)
    lines = []
    for name, (_, rows, _, _) in SUBJECTS.items():
        for panes in PANES:
            lines.append(line(name, 100 if given.quick else rows, panes))
            print(*lines[-1], sep="  ", flush=True)
    return [Table("control.md", "single window", HEAD, lines)]


if __name__ == "__main__":
    main()
