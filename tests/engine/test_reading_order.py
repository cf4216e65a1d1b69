"""The order in which a batch is read, over kills and replays that cut it into other tasks; the whole history in one batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.jobs import ledger_of
from tests.engine.test_query_changes import killed
from tests.runtime.streams import finish, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.testing import Session

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})


def late(seed: int, rows: int, begin: int = 0) -> pa.Table:
    """Ten rows a second, a third of them up to twenty seconds late."""
    rng = np.random.default_rng(seed)
    behind = np.where(rng.random(rows) < 1 / 3, rng.uniform(0, 20, rows), 0.0)
    times = ((begin + np.arange(rows)) / 10 + 1_000 - behind) * SECOND
    return pa.table(
        {"ts": pa.array(times.astype(np.int64)).cast(SCHEMA.field("ts").type), "k": np.arange(rows) % 3}, SCHEMA
    )


def job(session: Session, folder: Path, policy: sp.ProgressPolicy) -> sp.Job:
    options: dict[str, Any] = {"window": "10 seconds", "progress": policy, "late": folder / "late"}
    return stream_job(session, folder, sp.Aggregate("k", rows=sp.count()), SCHEMA, **options)


def answers(folder: Path) -> list[dict[str, object]]:
    return sorted(parquet_rows(folder / "out").to_pylist(), key=lambda row: (row["window_start"], row["k"]))


@pytest.mark.parametrize("place", ["before the sink", "before the commit"])
@pytest.mark.parametrize("policy", [sp.KSlack(), sp.AqKSlack(0.05)], ids=["KSlack", "AqKSlack"])
def test_a_batch_that_comes_again_in_other_tasks_gives_the_same_answers(
    place: str, policy: sp.ProgressPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    batches = [late(1, 600), late(2, 600, 600), late(3, 100, 1_200)]
    whole, again = tmp_path / "whole", tmp_path / "again"
    for folder in (whole, again):
        write_batches(folder / "in", batches)
    first = finish(job(Session(1), whole, policy))
    killed(place, job(Session(1), again, policy), monkeypatch)
    assert ledger_of(again).order(0)
    seen = finish(job(Session(2), again, policy))
    assert seen[0].punctuation == first[0].punctuation
    assert answers(again)[: len(answers(whole))] == answers(whole)
    assert sum(metrics.windows for metrics in seen) == sum(metrics.windows for metrics in first)


def test_the_whole_history_in_one_batch_is_answered_by_what_it_shows(tmp_path: Path):
    """600 rows of a minute: all windows but those of the last twenty seconds, and none of them had to wait for another batch."""
    write_batches(tmp_path / "in", [late(1, 600)])
    (metrics,) = finish(job(Session(1), tmp_path, sp.KSlack()))
    assert metrics.newest is not None
    assert metrics.punctuation is not None
    assert 19 * SECOND < metrics.newest - metrics.punctuation <= 20 * SECOND
    assert metrics.windows == 6
    assert metrics.totals["late"] == 0


def test_a_line_shows_how_much_is_learned(tmp_path: Path):
    write_batches(tmp_path / "in", [late(1, 300), late(2, 300, 300), late(3, 500, 600)])
    lines = [metrics.decision("progress") for metrics in finish(job(Session(1), tmp_path, sp.AqKSlack(0.01)))]
    assert [line.because for line in lines if line][:2] == [
        "learning: 300 of 1,000 rows by which the budget is judged",
        "learning: 600 of 1,000 rows by which the budget is judged",
    ]
    assert lines[-1] is not None
    assert "as K-slack" in lines[-1].because
