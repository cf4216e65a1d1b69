from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numba
import pytest

from skypane import kernels
from skypane.kernels.families import EVERY

KERNELS = 132
"""Compilations of all, one of a kernel for each of its array types: docs/clusters.md states the number."""

warm_module = importlib.import_module("skypane.kernels.warming")

PROGRAM = """
import numpy as np, pyarrow as pa, skypane as sp
from skypane import kernels
said = []
compiled = kernels.warm(said.append)
print(len(said), len(compiled))
points = np.asfortranarray(np.random.default_rng(0).random((20_000, 7)))
points.flags.writeable = False
from skypane.kernels.warming import compilations
from skypane.operators.fronts import NewPoints, Front, GroupedFronts
with compilations(None) as more:
    kernels.skyline_indices(points)
    kernels.skyline_indices(points[:1])
    kernels.skyline_indices(np.ones((2, 2), int))
    kernels.skyline_indices_by_group(points, np.arange(20_000, dtype=np.int32) // 7)
    kernels.skyline_indices_by_group(points, np.arange(20_000) // 1000)
    kernels.top_delta_indices(points, 10)
    kernels.k_dominant_indices(points[:500], 4)
    kernels.dominance_factors(points[:1])
    front = Front(7, 9_000)
    front.step(NewPoints(points, np.arange(20_000), np.arange(20_000)), 20_000)
    Front.restore(front.snapshot(), front.window)
    best, panes = kernels.skyline_indices(points), Front(7, 3)
    for pane in range(2):
        panes.take(NewPoints(points[best], np.full(len(best), pane), best + pane * 20_000), pane + 1)
    grouped = GroupedFronts(7, 9_000)
    for half in (slice(0, 10_000), slice(10_000, 20_000)):
        rows = np.arange(20_000)[half]
        grouped.step(NewPoints(points[half], rows, rows, rows % 3_000), int(rows[-1]) + 1)
    rows = pa.table({"k": [1, 2], "x": [0.5, None], "t": ["a", "b"]})
    functions = {"n": sp.count("x"), "s": sp.sum("x"), "i": sp.sum("k"), "v": sp.variance("x"), "m": sp.max("x")}
    query = sp.Aggregate("k", **functions)
    partial = query.lift(rows)
    query.lower(query.combine([partial, partial]))
    queue = query.queue(partial.schema, 2)
    for pane in range(3):
        queue.push(pane, partial)
        queue.evict_before(pane - 1)
    queue.answer()
    sp.Aggregate(d=sp.approx_count_distinct("t"), q=sp.approx_quantile("x")).lift(rows)
    sp.Score("log(k) + exp(k) ** 0.5").values(rows)
print(more)
"""


def run(cache: str | None = None) -> list[str]:
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.long
def test_nothing_compiles_after_warm():
    assert run()[1] == "[]"


@pytest.mark.night
def test_a_first_process_compiles_and_logs_it_once_and_a_second_one_loads_from_disk(tmp_path):
    cold, warm = run(str(tmp_path)), run(str(tmp_path))
    said, compiled = cold[0].split()
    assert (said, int(compiled)) == ("1", KERNELS)
    assert warm[0] == "0 0"


def test_warm_twice_compiles_nothing():
    kernels.warm()
    said: list[str] = []
    assert kernels.warm(said.append) == ()
    assert said == []
    assert warm_module.missing(EVERY) == []


@pytest.mark.parametrize(("uncached", "said"), [([], "once per installation"), (["scan"], "set NUMBA_CACHE_DIR")])
def test_a_process_that_compiles_logs_how_often_and_how_to_avoid_it(monkeypatch, uncached: list[str], said: str):
    monkeypatch.setattr(warm_module, "UNCACHED", uncached)
    lines: list[str] = []
    with warm_module.compilations(lines.append):

        @numba.njit
        def fresh(x):
            return x + 1

        fresh(1)
    assert len(lines) == 1
    assert said in lines[0]
