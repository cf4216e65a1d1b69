"""A step takes about the memory of its estimate: the most that the process holds meanwhile shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from skypane.operators.memory_estimates import step_bytes

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="a process reads its peak from /proc"
)

PEAKS = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, skypane as sp
from skypane.operators.memory_estimates import step_bytes

def most():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))

def taken(step):
    Path("/proc/self/clear_refs").write_text("5")
    before = most()
    made = step()
    return most() - before, made

rng, n = np.random.default_rng(1), 400_000
rows = pa.table({"id": np.arange(n), "key": rng.integers(0, 1000, n), "a": rng.random(n)})
rows = rows.append_column("b", pa.array(-rows.column("a").to_numpy()))
rows = rows.append_column("said", pa.array([f"text number {i}" for i in range(n)]))
query = eval(sys.argv[1])
rows = rows.select(query.reads(rows.schema))
small = query.lift(rows.slice(0, 100))
query.lower(query.combine([small, small]))  # compiled now
lifting, _ = taken(lambda: query.lift(rows))
parts = [query.lift(rows.slice(begin, n // 4)) for begin in range(0, n, n // 4)]
combining, whole = taken(lambda: query.combine(parts))
lowering, _ = taken(lambda: query.lower(whole))
print(lifting, step_bytes([rows]), max(combining, lowering), step_bytes(parts))
"""

ALLOWED = 1.5
"""The measured memory may be so much more than the estimate: pages, and what an allocator keeps."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "sp.Aggregate('id', n=sp.count(), mean=sp.avg('a'), most=sp.max('b'))",
        "sp.Aggregate('said', n=sp.count())",
        "sp.Aggregate((), n=sp.count_distinct('a'))",
        "sp.Aggregate('key', n=sp.count_distinct('said'))",
        "sp.Aggregate('key', said=sp.collect_list('said', order='a'))",
        "sp.Aggregate('id', middle=sp.approx_quantile('a', 0.5))",
        "sp.Skyline('a MIN, b MIN')",
        "sp.Skyline('a MIN, b MIN', by='key')",
        "sp.KDominant(1, 'a MIN, b MIN')",
        "sp.TopK(200_000, 'a')",
    ],
)
def test_no_step_takes_much_more_than_is_reported(query: str):
    done = subprocess.run([sys.executable, "-c", PEAKS, query], stdout=subprocess.PIPE, text=True, check=True)
    lifting, said_of_lifting, combining, said_of_combining = map(int, done.stdout.split())
    assert lifting < ALLOWED * said_of_lifting
    assert combining < ALLOWED * said_of_combining


def test_the_items_of_lists_count():
    lists = pa.table({"all": pa.array([list(range(1_000))], pa.list_(pa.int64()))})
    assert step_bytes([lists]) > 128 * 1_000
