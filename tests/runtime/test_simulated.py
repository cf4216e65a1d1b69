"""The simulator against the runtime: the same stream, policy and workers come to the same splitting and utilisation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.parameters import slow_but
from tests.runtime.streams import finish, stream_job, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.exchange import CONFIRM
from skypane.control.monitoring import SamplingPeriod, utilisation
from skypane.control.splitting import splitting
from skypane.runtime.sim.pane_farm import PaneFarm
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.windows import Windows

PANES = Windows.of("200 ms")
BATCH = 1_000_000
SETTLED = CONFIRM + 2
"""Batches until rows are exchanged, and the policy has seen what that came to."""
BATCHES = SETTLED + 5
SLOW = [("PB_RR", 2), ("AS", 2)]
USED = 0.7
"""Share of an interval in which workers are busy."""


def events(rng: np.random.Generator) -> list[np.ndarray]:
    """Return event times of each batch, in order; of its five panes the third has three times as many rows."""
    rows = [2_000, 2_000, 6_000, 2_000, 2_000]
    offsets = [np.sort(rng.integers(0, 200_000, count)) + 200_000 * pane for pane, count in enumerate(rows)]
    return [np.concatenate(offsets) + BATCH * batch for batch in range(1_000, 1_000 + BATCHES)]


def on_spark(spark: SparkSession, folder: Path, times: list[np.ndarray], name: str, n: int) -> list[sp.BatchMetrics]:
    """Return the metrics of the batches in which rows go where the policy sends them."""
    rng = np.random.default_rng(1)
    tables = [
        pa.table({"ts": pa.array(own, pa.timestamp("us", "UTC"))} | {f"c{c}": rng.random(len(own)) for c in range(4)})
        for own in times
    ]
    write_batches(folder / "in", tables, files=1)
    query, workers = sp.Skyline("c0 MIN, c1 MIN, c2 MIN, c3 MIN"), sp.WorkerOptions(plq_workers=n, splitting=name)
    job = stream_job(spark, folder, query, tables[0].schema, window=PANES, workers=workers, output=sp.Memory())
    # Only balance counts: an exchange is free, and windows cost so much that nothing is left for merges.
    free = Costs(exchange=0.0, exchange_per_row=0.0, window=1.0, job=100.0, threads=100.0)
    return finish(replace(job, settings=replace(job.settings, costs=free)))[SETTLED:]


def load(period: SamplingPeriod) -> float:
    found = utilisation(period)
    assert found is not None
    return found.rho


@pytest.mark.parametrize(("name", "n"), slow_but([], [*SLOW, ("PB_RR", 1), ("TB_RR", 2)], slow=SLOW))
def test_the_simulator_gives_the_figures_of_spark(name: str, n: int, spark: SparkSession, tmp_path: Path):
    """rho within a tenth and sigma within a twentieth, with what a row cost on Spark, in intervals that it is busy for 70 %."""
    times = events(np.random.default_rng(0))
    shown = on_spark(spark, tmp_path, times, name, n)
    assert {batch.plq_workers for batch in shown} == {n}
    assert {batch.exchange for batch in shown} == {n > 1}
    cost = sum(sum(batch.busy) for batch in shown) / sum(batch.rows for batch in shown)
    seconds = cost * len(times[0]) / n / USED
    there = [
        load(SamplingPeriod(seconds, tuple(cost * rows for rows in batch.task_rows), batch.task_rows, batch.task_rows))
        for batch in shown
    ]

    event = np.concatenate(times)
    arrival = np.concatenate([(batch + np.arange(len(own)) / len(own)) * seconds for batch, own in enumerate(times)])
    farm = PaneFarm(
        SimulatedStream.of(PANES, event, np.rint(arrival * 1e6).astype(np.int64), slack=0), np.array([cost]), n
    )
    policy = splitting(name)
    state, here = policy.init(), []
    for batch in range(BATCHES):
        interval = farm.advance((batch + 1) * seconds, policy, state)
        state = policy.observe(state, interval.sample)
        here.append(interval.period)
    assert np.mean(there) == pytest.approx(np.mean([load(period) for period in here[SETTLED:]]), rel=0.1)
    sigmas = [period.partitions / period.panes for period in here[SETTLED:]]
    assert np.mean([batch.sigma for batch in shown]) == pytest.approx(np.mean(sigmas), rel=0.05)
