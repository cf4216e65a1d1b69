"""Starts without a late sink, of a query that had one before: what was begun or kept for that sink is not lost in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.jobs import partials
from tests.engine.test_held import WEEK, job, plan, rejected, rows, seconds
from tests.engine.test_query_changes import listed
from tests.runtime.streams import SECOND, ended, expected, finish, parquet_rows, windows_of, write_batches

import skypane as sp
from skypane.testing import Session

pytestmark = pytest.mark.spark

FAR = 52 * WEEK
PLAN = replace(plan(sp.KSlack(patience=30)), query=sp.Aggregate(n=sp.count(), cheapest=sp.min("price")))
BATCHES = [
    rows(0, seconds(0, 40)),
    rows(100, [*seconds(40, 60), FAR]),  # row 120 is held
    rows(200, seconds(60, 80)),
    rows(300, seconds(80, 120)),  # enough rows to go on without row 120
]


def with_unread_column(batch: pa.Table) -> pa.Table:
    """No query reads the column, so only the late sink receives it."""
    return batch.append_column("note", pa.array([f"note {row}" for row in batch["id"].to_pylist()]))


def run(session: Session, folder: Path, numbers: range, **options: Any) -> list[sp.BatchMetrics]:
    """Write these batches, and run the job over them."""
    batches = [with_unread_column(BATCHES[number]) for number in numbers]
    write_batches(folder / "in", batches, first=numbers.start)
    return finish(job_of(session, folder, **options))


def job_of(session: Session, folder: Path, **options: Any) -> sp.Job:
    return job(session, folder, PLAN, with_unread_column(BATCHES[0]).schema, **options)


def broken(*_: object) -> None:
    raise OSError("no space left")


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings about the late sink since the last call."""
    said = [record.getMessage() for record in caplog.records if "late sink" in record.getMessage()]
    caplog.clear()
    return said


def test_held_rows_are_named_and_kept_for_a_later_start_that_has_a_late_sink(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    assert run(session, tmp_path, range(2))[-1].held_rows == 1
    assert not warnings_of(caplog)
    run(session, tmp_path, range(2, 3), late=None)
    (said,) = warnings_of(caplog)
    assert said.startswith(
        "the last start had a late sink, and this one has none: 1 row far ahead of the others is kept"
    )
    assert "batch" not in said
    assert run(session, tmp_path, range(3, 4))[-1].quarantined == {"future": 1}
    assert not warnings_of(caplog)
    assert rejected(tmp_path) == Counter({(120, "future"): 1})
    assert parquet_rows(tmp_path / "late")["note"].to_pylist() == ["note 120"]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PLAN, BATCHES)


def test_without_a_late_sink_in_the_end_held_rows_are_counted_and_their_files_removed(session: Session, tmp_path: Path):
    run(session, tmp_path, range(2))
    metrics = run(session, tmp_path, range(2, 4), late=None)
    assert metrics[-1].quarantined == {"future": 1}
    assert rejected(tmp_path) == Counter()
    ended(job_of(session, tmp_path, late=None)).drain()
    assert not partials(tmp_path)


def test_a_drain_that_was_begun_with_a_late_sink_is_finished_with_one(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    run(session, tmp_path, range(2))
    handle = ended(job_of(session, tmp_path, late=broken))
    with pytest.raises((sp.SkypaneError, OSError), match="no space left"):
        handle.drain()
    before = listed(tmp_path / "checkpoint" / "skypane" / "ledger")
    with pytest.raises(sp.CheckpointError, match=r"would finish a drain .* might reject 1 row .* late=sp\.Console\(\)"):
        job_of(session, tmp_path, late=None).start()
    assert listed(tmp_path / "checkpoint" / "skypane" / "ledger") == before
    assert not warnings_of(caplog)
    assert finish(job_of(session, tmp_path))[0].quarantined == {"future": 1}
    assert rejected(tmp_path) == Counter({(120, "future"): 1})


def test_a_batch_that_was_begun_with_a_late_sink_is_named(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    early = rows(400, [second * SECOND for second in (1, 2, 45)])  # rows 400 and 401 are late
    batches = [BATCHES[0], rows(100, seconds(40, 100)), early]
    prompt = plan(sp.Watermark("0 seconds"))

    def once(**options: Any) -> list[sp.BatchMetrics]:
        return finish(job(session, tmp_path, prompt, early.schema, **options))

    write_batches(tmp_path / "in", batches[:2])
    once()
    write_batches(tmp_path / "in", batches[2:], first=2)
    with pytest.raises(sp.SkypaneError, match="no space left"):
        once(late=broken)
    (metrics,) = once(late=None)
    (said,) = warnings_of(caplog)
    assert "batch 2, which was begun with it, is repeated" in said
    assert metrics.late_rows == 3
    assert not once(late=None)
    assert not warnings_of(caplog)
