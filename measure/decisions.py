"""Small measurements for docs/decisions, each of a rejected option: python -m measure.decisions.

Counts are the same on any machine, except for threads, whose number depends on the installed libraries; seconds are
not.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import skypane as sp
from skypane.operators.window_query import TwoStacks
from skypane.plan import Plan
from skypane.progress import KSlack, PaneArrivals
from skypane.runtime import local
from skypane.windows import Windows

DAY = 86_400_000_000
THREADS = """
from pathlib import Path
def told(what): print(len(list(Path("/proc/self/task").iterdir())), what)
told("with nothing imported")
import numpy, pyarrow
told("with NumPy and pyarrow")
import io, pyarrow.parquet as pq
file = io.BytesIO(); pq.write_table(pyarrow.table({"x": range(1000)}), file); pq.read_table(file)
told("once it has read parquet")
"""


def one_wrong_clock() -> Iterator[str]:
    """Of 3: a row a year ahead in the middle of 12,000, a second apart, in batches of 200."""
    rng = np.random.default_rng(3)
    times = (np.arange(12_000) * 1_000_000 - rng.exponential(5e6, 12_000)).astype(np.int64)
    times[6_000] += 366 * DAY
    for name, policy in (("held", KSlack()), ("believed at once", KSlack(max_ahead=None))):
        state = policy.init()
        for at in range(0, len(times), 200):
            state = policy.decide(state, PaneArrivals.of_times(times[at : at + 200], Windows.of("1 minute")))[0]
        yield f"one clock a year ahead, {name}: {state.dropped:,} of {len(times):,} rows dropped"


def daily_prices() -> Iterator[str]:
    """Of 4: how many rows of a year of daily prices of 20 stocks are held when nothing more comes."""
    days = [day for day in range(365) if (day + 2) % 7 < 5]  # day 0 is a Wednesday
    times = pa.array([day * DAY for day in days for _ in range(20)], pa.timestamp("us", "UTC"))
    rows = pa.table({"at": times, "price": np.arange(len(times), dtype=np.float64)})
    plan = Plan(sp.Skyline("price MIN"), Windows.of("1 day"), "at", KSlack())
    for batches in (1, 12, 52):
        size = -(-len(rows) // batches)
        *_, last = local.run(plan, [rows.slice(at, size) for at in range(0, len(rows), size)])
        yield f"a year of daily prices, batches: {batches}: {last.totals.held:,} of {len(rows):,} rows held at the end"


def loaded_processes() -> Iterator[str]:
    """Of 12: the threads of a process that has loaded what a worker needs, and how long it takes to fork."""
    if Path("/proc/self/task").exists():
        command = [sys.executable, "-c", THREADS]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own command
        yield from (f"threads of a process: {line}" for line in told.splitlines())
    yield f"a fork of a process that has it all loaded, to its end: {sorted(_forked() for _ in range(9))[4]:.3f} s"


def _forked() -> float:
    began = time.perf_counter()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return time.perf_counter() - began


def windows_of_few_panes() -> Iterator[str]:
    """Of 13: CPU of a window of top-k, merged directly and by two stacks."""
    rng = np.random.default_rng(1)
    for panes, k in ((5, 100), (20, 2_000), (100, 2_000)):
        query = sp.TopK(k, "x")
        parts = [query.lift(pa.table({"x": rng.random(2 * k), "id": np.arange(2 * k)})) for _ in range(panes + 100)]
        stacks, directly, shared = TwoStacks(query), 0.0, 0.0
        for newest, part in enumerate(parts):
            first = max(0, newest - panes + 1)
            began = time.process_time()
            stacks.evict_before(first)
            stacks.push(newest, part)
            stacks.answer()
            middle = time.process_time()
            query.lower(query.combine(parts[first : newest + 1]))
            if newest >= panes:
                shared, directly = shared + middle - began, directly + time.process_time() - middle
        yield f"top-{k:,}, windows of {panes} panes: {10 * directly:.2f} ms directly, {10 * shared:.2f} by two stacks"


def sums_of_floats() -> Iterator[str]:
    """Of 20: how many sums the same numbers have, and what is left of those that are taken away again."""
    chance = random.Random(1)

    def drawn() -> float:
        return chance.uniform(-1, 1) * 10.0 ** chance.randrange(6)

    numbers, found = [drawn() for _ in range(1_000)], set[float]()
    for _ in range(1_000):
        chance.shuffle(numbers)
        found.add(_added(numbers))
    yield f"1,000 numbers in 1,000 orders: {len(found)} sums"
    window, total = deque[float](), 0.0
    for _ in range(100_000):
        window.append(drawn())
        total += window[-1]
        if len(window) > 60:
            total -= window.popleft()
    yield f"a window of 60 after 100,000 of them: off by {abs(total - math.fsum(window)):.0e}"


def _added(numbers: list[float]) -> float:
    """One after the other: sum() of newer Pythons makes up for what is lost."""
    total = 0.0
    for number in numbers:
        total += number
    return total


if __name__ == "__main__":
    for figure in (one_wrong_clock, daily_prices, loaded_processes, windows_of_few_panes, sums_of_floats):
        print(*figure(), sep="\n")
