"""Readiness makes the output a function of the inputs: whatever interleaves how, and however it is cut into batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.parameters import times
from tests.runtime.streams import finish, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.progress import PaneArrivals, SourceCount
from skypane.runtime import local
from skypane.windows import Windows

NAMES = ("a", "b", "c")
SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "source": pa.string(),
        "sequence": pa.int64(),
        "key": pa.int64(),
        "x": pa.float64(),
    }
)


def text(rows: pa.Table) -> str:
    """What the rows say one after the other: any other order says something else."""
    return " ".join(f"{row['source']}{row['sequence']}:{row['x']!r}" for row in rows.to_pylist())


QUERY = sp.Aggregate(
    "key",
    time="at",
    order=sp.in_order(text, "source", "sequence", "x", returns=pa.string()),
    first=sp.first("x"),
    last=sp.last("x"),
    all=sp.collect_list("x"),
    total=sp.sum("x"),
    spread=sp.variance("x"),
)


def plan_of(length: int, slide: int) -> Plan:
    return Plan(QUERY, Windows(length, slide), "at", sp.Readiness("1 us", sources=NAMES), "source")


def inputs(rng: np.random.Generator, least: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Rows of each source in the order of time, with ties within and between them."""
    found = {}
    for name in NAMES:
        times = np.cumsum(rng.integers(0, 4, rng.integers(least, 25)))
        found[name] = [
            {"at": int(time), "source": name, "sequence": number, "key": int(rng.integers(2)), "x": float(rng.normal())}
            for number, time in enumerate(times)
        ]
    return found


def interleaved(rows: dict[str, list[dict[str, Any]]], rng: np.random.Generator) -> list[pa.Table]:
    """One way for them to come, in batches."""
    turns = rng.permutation([name for name in NAMES for _ in rows[name]])
    left = {name: iter(mine) for name, mine in rows.items()}
    order = [next(left[name]) for name in turns]
    cuts = sorted({0, len(order), *rng.integers(0, len(order) + 1, rng.integers(0, 9)).tolist()})
    return [pa.Table.from_pylist(order[i:j], schema=SCHEMA) for i, j in pairwise(cuts)]


@given(st.integers(0, 2**32 - 1), st.sampled_from([(10, 10), (12, 5), (9, 3)]))
@settings(max_examples=25)
def test_answers_are_the_same_for_any_interleaving_and_any_batches(seed: int, window: tuple[int, int]):
    rng = np.random.default_rng(seed)
    plan = plan_of(*window)
    rows = inputs(rng)
    found = []
    for _ in range(3):
        outcomes = list(local.run(plan, interleaved(rows, rng)))
        assert not any(outcome.rejection.reasons or outcome.rejection.late for outcome in outcomes)
        found.append([
            (answer.window, sorted(map(repr, answer.rows.to_pylist()))) for outcome in outcomes for answer in outcome.answers
        ])  # fmt: skip
    assert found[0] == found[1] == found[2]
    ready = min(mine[-1]["at"] for mine in rows.values())
    assert [window for window, _ in found[0]] == due(rows, plan.windows, ready)


def due(rows: dict[str, list[dict[str, Any]]], windows: Windows, ready: int) -> list[int]:
    """The windows with a row whose end every source has come to."""
    times = [row["at"] for mine in rows.values() for row in mine]
    holding = {window for pane in windows.panes_at(np.array(times)).tolist() for window in windows.windows_of(pane)}
    return sorted(window for window in holding if windows.bounds(window)[1] <= ready)


def streamed(spark: SparkSession, folder: Path, batches: list[pa.Table], files: int, **options: Any) -> list[str]:
    """What a real query answers to them, each a micro-batch of so many files; no row of it is late or quarantined."""
    write_batches(folder / "in", batches, files=files)
    plan = plan_of(12, 5)
    own: dict[str, Any] = {"time": plan.time, "window": plan.windows, "progress": plan.progress, "source": plan.source}
    seen = finish(stream_job(spark, folder, QUERY, SCHEMA, files=files, **own | options))
    assert sum(metrics.rows for metrics in seen) == sum(batch.num_rows for batch in batches)
    assert not any(metrics.late_rows or metrics.quarantined for metrics in seen)
    return sorted(map(repr, parquet_rows(folder / "out").to_pylist()))


def same_on_spark(spark: SparkSession, folder: Path, seed: int, draws: int) -> None:
    """Hold real queries over several interleavings of the same inputs, cut and spread differently, against the oracle."""
    rng = np.random.default_rng(seed)
    rows = inputs(rng, least=16)
    oracle = list(local.answers(plan_of(12, 5), interleaved(rows, rng)))
    wanted = sorted(repr(row) for answer in oracle for row in answer.rows.to_pylist())
    assert len(oracle) > 2
    for draw in range(draws):
        splitting = ("PB_RR", "TB_RR", "AS")[draw % 3]
        workers = sp.WorkerOptions(plq_workers=1 + draw % 2, wlq_workers=2 - draw % 2, splitting=splitting)
        found = streamed(spark, folder / f"{seed}-{draw}", interleaved(rows, rng), files=1 + draw % 3, workers=workers)
        assert found == wanted, f"seed {seed}, draw {draw}"


def test_on_spark_too_answers_are_the_same_to_the_last_bit(spark: SparkSession, tmp_path: Path):
    same_on_spark(spark, tmp_path, seed=4, draws=2)


@pytest.mark.slow
def test_on_spark_too_answers_are_the_same_for_many_draws(spark: SparkSession, tmp_path: Path):
    for seed in range(5, 5 + times(2)):
        same_on_spark(spark, tmp_path, seed, draws=4)


def test_a_source_that_is_named_and_never_speaks_holds_back_all_and_is_named():
    policy = sp.Readiness("1 us", sources=("a", "z"))
    plan = Plan(QUERY, Windows(10, 10), "at", policy, "source")
    rows = [{"at": at, "source": "a", "sequence": at, "key": 0, "x": 1.0} for at in range(100)]
    (outcome,) = local.run(plan, [pa.Table.from_pylist(rows, schema=SCHEMA)])
    assert outcome.answers == ()
    assert policy.explain(policy.init()) == "waiting for the first row of a, z"
    came = replace(PaneArrivals.of_times(np.arange(100), Windows(10, 10)), sources={"a": SourceCount(100, 0, 99)})
    assert policy.explain(policy.decide(policy.init(), came)[0]) == "waiting for the first row of z"
