"""Where the windows of aggregates by key are answered on one machine: in threads, or in the driver, which keeps its merges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.runtime.streams import AnySession, answers, finish, late_rows, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.plan import Plan
from skypane.runtime.spark.engine.window_program import calls_other_code
from skypane.testing import Session

SCHEMA = late_rows(1, batches=1)[0].schema
MERGES = Costs(job=1e3, threads=0.0, window=0.0, window_per_row=1.0)
"""Only merges count, and a job is not worth having."""

KEYED = sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight"), mean=sp.avg("price"), most=sp.max("rating"))


def spread(rows: pa.Table) -> float:
    return float(rows.num_rows)


OWN = sp.Aggregate("sensor", time="ts", n=sp.count(), own=sp.in_order(spread, "price", returns=pa.float64()))


def job_of(session: AnySession, folder: Path, query: sp.Query, **windows: Any) -> sp.Job:
    workers = sp.WorkerOptions(wlq_workers=2)
    job = stream_job(session, folder, query, SCHEMA, progress=sp.Watermark("0 seconds"), workers=workers, **windows)
    return replace(job, settings=replace(job.settings, costs=MERGES))


def places(seen: list[sp.BatchMetrics]) -> list[str]:
    return [metrics.wlq_where for metrics in seen if metrics.windows]


def assert_answered(job: sp.Job, folder: Path, batches: list[pa.Table]) -> None:
    plan = job.settings.plan
    assert isinstance(plan, Plan)
    found, wanted = parquet_rows(folder / "out"), answers(plan, batches)
    assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, wanted.to_pylist()))


@pytest.mark.core
def test_windows_that_share_nothing_are_answered_in_threads(session: Session, tmp_path: Path):
    batches = late_rows(5, batches=8, rows=60)
    write_batches(tmp_path / "in", batches)
    job = job_of(session, tmp_path, KEYED, window="10 s")
    seen = finish(job)
    assert set(places(seen)) == {"threads"}
    placement = next(metrics for metrics in seen if metrics.windows).decision("placement")
    assert placement is not None
    assert " in threads" in placement.because
    assert_answered(job, tmp_path, batches)


@pytest.mark.core
def test_the_driver_answers_windows_that_share_merges_from_the_second_batch_on_and_after_a_restart(
    session: Session, tmp_path: Path
):
    """For the first windows all panes are new, and threads share them; then the driver adds the new panes alone."""
    batches = late_rows(6, batches=14, rows=60)
    write_batches(tmp_path / "in", batches[:8])
    job = job_of(session, tmp_path, KEYED, window="80 s", slide="1 s")
    first = places(finish(job))
    write_batches(tmp_path / "in", batches[8:], first=8)
    second = places(finish(job))
    assert min(len(first), len(second)) > 2
    for where in (first, second):
        assert where == ["threads", *["driver"] * (len(where) - 1)]
    assert_answered(job, tmp_path, batches)


class Mine(sp.TopK):
    """A query of users, which is divided by keys as the one that it is made of."""


@pytest.mark.parametrize(
    ("query", "other"),
    [
        (KEYED, False),
        (OWN, True),
        (sp.TopK(2, "price", by="sensor"), False),
        (sp.Skyline("price MIN", by="sensor"), False),
        (Mine(2, "price", by="sensor"), True),
    ],
)
def test_code_of_users_is_known(query: sp.Query, other: bool):
    assert calls_other_code(query, SCHEMA) is other


def test_code_of_users_is_not_called_by_several_threads(session: Session, tmp_path: Path):
    batches = late_rows(7, batches=6, rows=40)
    write_batches(tmp_path / "in", batches)
    job = job_of(session, tmp_path, OWN, window="10 s")
    assert set(places(finish(job))) == {"driver"}
    assert_answered(job, tmp_path, batches)
