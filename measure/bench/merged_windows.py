"""Windows that several tasks merge, as MERGE of paper 5 does, against one task a window.

    python -m measure.bench.merged_windows [--quick]

The queries have no groups, so a window cannot be divided by keys, and a batch has fewer windows than there are workers.
Windows follow one another by one pane, each pane has one partial, and all panes have equally many rows. Ways to answer
a batch, each of which must give the same answers:

    continued    the driver answers the windows one after the other, with the merges that it keeps from the last batch
    at once      a task a window, which merges all its partials in one call: WindowWorker answers its only window so
    two rounds   tasks merge disjoint sets of a window's partials, and then one task a window merges their results; the
                 best of 2, 4, 8 and 16 sets, at most as many as there are workers for a window
    in pairs     tasks merge pairs of partials, then pairs of results, until one is left, as paper 5 does

Each merge runs alone in this process, one after the other. The CPU seconds of the busiest task of each round, summed over
the rounds, are the critical path. Threads that wait for the interpreter lock are not in it, nor files, nor the
transfer of results. The overhead of threads and jobs comes on top, as in Costs: `threads` once, `job` for each
round; the last round may run in the driver instead. Each figure is the least of two tries, of six for small windows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.bench.division import Held
from measure.bench.front_shards import near_a_plane
from measure.results.record import Found, Table
from skypane.control.costs import DEFAULT_COSTS
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery
from skypane.types import FloatArray
from skypane.windows import Windows

BATCHES: Final = (1, 2, 4)
"""Windows that a batch completes."""
SETS: Final = (2, 4, 8, 16)
TRIES: Final = (2, 6)
MANY: Final = 150_000
"""Tries of windows of at least so many merged rows, and of smaller ones."""
KEPT: Final = 4
"""Windows that the driver has answered before the batches that it continues with; the second and third cost more."""
LEAST: Final = 1e-3
SHARE: Final = 0.9
"""MERGE pays if it saves so many seconds, and takes at most this share of the time; less is noise."""

T = TypeVar("T")
Rounds: TypeAlias = tuple[tuple[float, ...], ...]
"""The seconds of each merge of each round."""


@dataclass(frozen=True)
class Subject:
    """A query, its criteria, the sizes of panes, and where its points come from."""

    query: Query
    d: int
    sizes: tuple[int, ...]
    points: Callable[[int, int, np.random.Generator], FloatArray] = lambda n, d, rng: rng.random((n, d))

    def partials(self, rows: int, panes: int) -> list[Held]:
        """Return the partials of panes of so many rows."""
        rng = np.random.default_rng(7)
        return [Held(self.query.lift(table_of(self.points(rows, self.d, rng)))) for _ in range(panes)]


def table_of(points: FloatArray) -> pa.Table:
    """Return the points as a table with a column for each criterion."""
    return pa.table({f"c{at}": column for at, column in enumerate(points.T)})


def criteria(d: int) -> str:
    """Return the preference of the least values of all columns."""
    return ", ".join(f"c{at} MIN" for at in range(d))


SIZES: Final = (1_000, 10_000, 100_000)
SUBJECTS: Final[dict[str, Subject]] = {
    "skyline, d = 4": Subject(sp.Skyline(criteria(4)), 4, SIZES),
    "skyline, d = 8": Subject(sp.Skyline(criteria(8)), 8, SIZES),
    "skyline, d = 8, near a plane": Subject(sp.Skyline(criteria(8)), 8, (300, 1_000, 3_000), near_a_plane),
    "7-dominant, d = 8": Subject(sp.KDominant(7, criteria(8)), 8, (1_000, 10_000)),
    "top 1,000": Subject(sp.TopK(1_000, "c0 + c1"), 4, SIZES),
}


class Case(NamedTuple):
    """Windows of so many panes, so many in a batch, and the workers."""

    subject: str
    panes: int
    windows: int
    workers: int

    @property
    def tasks(self) -> int:
        """Workers for each window."""
        return self.workers // self.windows


class Overhead(NamedTuple):
    """Seconds in which the first round of tasks begins, and each round after it."""

    first: float
    again: float


OVERHEADS: Final = (
    Overhead(0.0, 0.0),
    Overhead(DEFAULT_COSTS.threads, 0.0),
    Overhead(DEFAULT_COSTS.job, DEFAULT_COSTS.job),
)
"""None, threads of the driver, Spark jobs."""


def split(items: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Return at most `parts` consecutive lists of about equal length, none of them empty."""
    parts = min(parts, len(items))
    return [items[at * len(items) // parts : (at + 1) * len(items) // parts] for at in range(parts)]


Plan: TypeAlias = Callable[[int], int]
"""The number of sets in which a round merges so many tables; the round with one set is the last."""


def at_once(tables: int) -> int:  # noqa: ARG001 - a plan
    """Merge all tables in one round."""
    return 1


def in_two(sets: int) -> Plan:
    """Merge so many sets, and then their results."""
    return lambda tables: sets if tables > sets else 1


def in_pairs(tables: int) -> int:
    """Merge pairs."""
    return (tables + 1) // 2


def merged(query: Query, partials: Sequence[pa.Table], plan: Plan) -> tuple[Rounds, pa.Table]:
    """Merge partials as planned; return the seconds, and the answer of the window."""
    tables, rounds = list(partials), []
    while True:
        sets, done, seconds = split(tables, plan(len(tables))), [], []
        for one in sets:
            began = time.process_time()
            table = query.combine(one)
            done.append(query.lower(table) if len(sets) == 1 else table)
            seconds.append(time.process_time() - began)
        tables = done
        rounds.append(tuple(seconds))
        if len(sets) == 1:
            return tuple(rounds), tables[0]


def least(tries: Sequence[Rounds]) -> Rounds:
    """Return the least seconds of each merge."""
    return tuple(tuple(map(min, zip(*same, strict=True))) for same in zip(*tries, strict=True))


def critical(rounds: Rounds, tasks: int) -> tuple[float, ...]:
    """Return the seconds of the busiest task of each round, if so many tasks share its merges."""
    return tuple(max(map(sum, split(merges, tasks))) for merges in rounds)


@dataclass(frozen=True)
class Window:
    """The seconds of a window: at once, in two rounds for each number of sets, in pairs."""

    whole: float
    two: Mapping[int, Rounds]
    pairs: Rounds

    def rounds(self, tasks: int) -> dict[str, tuple[float, ...]]:
        """Return the seconds of the rounds of each way in which so many tasks may merge the window."""
        found = {f"{sets} sets": critical(rounds, tasks) for sets, rounds in self.two.items() if sets <= tasks}
        return {**found, "pairs": critical(self.pairs, tasks)}


@dataclass(frozen=True)
class Measured:
    """The seconds of windows that follow one another, of batches that the driver continues with, and the rows merged."""

    windows: tuple[Window, ...]
    continued: Mapping[int, float]
    rows: int


def measure(query: Query, panes: Sequence[Held], length: int) -> Measured:
    """Measure windows of so many panes; there must be enough panes for all batches of the driver."""
    tasks = [
        WindowTask(at, tuple((pane, (panes[pane],)) for pane in range(at, at + length)))
        for at in range(KEPT + sum(BATCHES))
    ]
    own = WindowQuery(query, Windows(length, 1), None)
    some = tasks[KEPT : KEPT + max(BATCHES)]
    rows = sum(held.rows for _, (held,) in some[0].panes)
    tries = TRIES[rows < MANY]
    kept = [continued(own, tasks) for _ in range(tries)]
    windows = tuple(window(own, task, tries) for task in some)
    return Measured(windows, {count: min(one[count] for one in kept) for count in BATCHES}, rows)


def continued(own: WindowQuery, tasks: Sequence[WindowTask[Held]]) -> dict[int, float]:
    """Return the seconds in which one worker answers batches of windows, after those that it has answered before."""
    worker, at, seconds = own.worker(), KEPT, {}
    for _ in worker.answers(tasks[:KEPT], table_in):
        pass
    for count in BATCHES:
        began = time.process_time()
        for _ in worker.answers(tasks[at : at + count], table_in):
            pass
        seconds[count] = time.process_time() - began
        at += count
    return seconds


def window(own: WindowQuery, task: WindowTask[Held], tries: int) -> Window:
    """Measure the ways to answer a window without kept merges, which must be equal."""
    tables = [held.table for _, (held,) in task.panes]
    plans = {sets: in_two(sets) for sets in SETS if sets < len(tables)}
    whole: list[Rounds] = []
    pairs: list[Rounds] = []
    two: dict[int, list[Rounds]] = {sets: [] for sets in plans}
    answer = own.worker().answer(task, table_in).rows
    expected = ordered(answer.select(answer.column_names[2:]))
    for _ in range(tries):
        for plan, into in ((at_once, whole), (in_pairs, pairs), *((plans[sets], two[sets]) for sets in plans)):
            rounds, rows = merged(own.query, tables, plan)
            into.append(rounds)
            assert ordered(rows).equals(expected)
    quickest = {sets: least(found) for sets, found in two.items()}
    return Window(least(whole)[0][0], quickest, least(pairs))


def table_in(held: Held) -> pa.Table:
    """Return the table of a partial."""
    return held.table


def ordered(rows: pa.Table) -> pa.Table:
    """Return the rows in the order of their values."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def together(windows: Sequence[tuple[float, ...]], overhead: Overhead) -> float:
    """Return the seconds in which all windows, given by the seconds of their rounds, are merged.

    The last round runs in tasks, or in the driver, one window after the other.
    """
    slowest: list[float] = [max(seconds) for seconds in zip(*windows, strict=True)]
    before = overhead.first + overhead.again * (len(slowest) - 2) + sum(slowest[:-1])
    return before + min(overhead.again + slowest[-1], sum(rounds[-1] for rounds in windows))


def merging(windows: Sequence[Window], tasks: int, overhead: Overhead) -> dict[str, float]:
    """Return the seconds of each way to merge a batch of windows, each by so many tasks."""
    each = [window.rounds(tasks) for window in windows]
    return {way: together([rounds[way] for rounds in each], overhead) for way in each[0]}


def alone(windows: Sequence[Window], overhead: Overhead) -> float:
    """Return the seconds of the windows, each merged at once: in tasks, or in the driver, whichever is sooner."""
    seconds = [window.whole for window in windows]
    return min(overhead.first + max(seconds), sum(seconds))


def pays(case: Case, measured: Measured, overhead: Overhead, *, kept: bool) -> bool:
    """Return whether MERGE is clearly sooner than windows at once, and, if merges are kept, than the driver with them."""
    windows = measured.windows[: case.windows]
    other = alone(windows, overhead)
    other = min(other, measured.continued[case.windows]) if kept else other
    best = min(merging(windows, case.tasks, overhead).values())
    return best <= SHARE * other and other - best >= LEAST


def from_size(holds: Mapping[int, bool]) -> str:
    """Return the least size from which all larger ones hold; "no" if the largest does not."""
    found = "no"
    for size in sorted(holds, reverse=True):
        if not holds[size]:
            break
        found = f"{size:,}"
    return found


HEAD: Final = (
    "query",
    "panes",
    "windows",
    "workers",
    "rows a pane",
    "rows merged",
    "continued, ms",
    "at once, ms",
    "two rounds, ms",
    "in pairs, ms",
    "pays from: no overhead, threads, jobs",
    "with kept merges",
)


def verdict(case: Case, sizes: Mapping[int, Measured], *, kept: bool) -> str:
    """Return the rows a pane from which MERGE pays, for each overhead."""
    found = [{rows: pays(case, one, overhead, kept=kept) for rows, one in sizes.items()} for overhead in OVERHEADS]
    return ", ".join(map(from_size, found))


def line(case: Case, sizes: Mapping[int, Measured]) -> list[str]:
    """Return a line of the table; its seconds are those of the largest panes, without overhead."""
    rows, largest = max(sizes.items())
    windows = largest.windows[: case.windows]
    ways = merging(windows, case.tasks, OVERHEADS[0])
    pairs = ways.pop("pairs")
    sets = min(ways, key=lambda way: ways[way])
    slowest = max(window.whole for window in windows)
    continued, whole, two, two_by_two = (
        f"{seconds * 1e3:.1f}" for seconds in (largest.continued[case.windows], slowest, ways[sets], pairs)
    )
    return [
        case.subject,
        f"{case.panes}",
        f"{case.windows}",
        f"{case.workers}",
        f"{rows:,}",
        f"{largest.rows:,}",
        continued,
        whole,
        f"{two} ({sets})",
        two_by_two,
        verdict(case, sizes, kept=False),
        verdict(case, sizes, kept=True),
    ]


def lines_of(cases: Sequence[Case], sizes: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    """Yield a line of the table for each case."""
    measured: dict[tuple[str, int], dict[int, Measured]] = {}
    for case in cases:
        of = case.subject, case.panes
        if of not in measured:
            measured[of] = {size: at_size(SUBJECTS[case.subject], size, case.panes) for size in sizes[case.subject]}
        yield line(case, measured[of])


def at_size(subject: Subject, rows: int, panes: int) -> Measured:
    """Measure windows of panes of so many rows."""
    return measure(subject.query, subject.partials(rows, panes + KEPT + sum(BATCHES)), panes)


FEW: Final = ((1, 4), (2, 4), (1, 16), (2, 16), (4, 16))
"""Windows of a batch, fewer than workers."""
PANES: Final = {"skyline, d = 8, near a plane": (30,)}
CASES: Final = [
    Case(subject, panes, *few) for subject in SUBJECTS for panes in PANES.get(subject, (5, 30, 60)) for few in FEW
]
QUICK: Final = [Case(subject, 5, 2, 4) for subject in SUBJECTS]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small panes, few cases")
    given = parser.parse_args(argv)
    sizes = {name: (200,) if given.quick else subject.sizes for name, subject in SUBJECTS.items()}
    lines = []
    for found in lines_of(QUICK if given.quick else CASES, sizes):
        lines.append(found)
        print(*found, sep="  ", flush=True)
    return [Table("control.md", "merged windows", HEAD, lines)]


if __name__ == "__main__":
    main()
