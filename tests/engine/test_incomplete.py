"""A drain declares a stream complete, so it is refused while rows are known to wait, and `now` drains all the same."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.engine import jobs
from tests.runtime.streams import SECOND, drained, ended, expected, late_rows, parquet_rows, start_knowing, windows_of

import skypane as sp
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.testing.stream_query import BatchLog
from skypane.windows import Windows

QUERY = sp.Aggregate("sensor", n=sp.count(), low=sp.min("price"))
PLAN = Plan(QUERY, Windows(30 * SECOND, 30 * SECOND), "ts", sp.Watermark("2 minutes"))
BATCHES = late_rows(11, batches=6)
SEVERAL = {"best": QUERY, "load": sp.Aggregate(n=sp.count())}


def job_of(session: Session, folder: Path, asked: Any = QUERY) -> sp.Job:
    """Return a job that reads a table in each batch."""
    stream: Any = sp.streams if isinstance(asked, dict) else sp.stream
    job: sp.Job = stream(
        session.stream(BATCHES), asked, time="ts", window=PLAN.windows, progress=PLAN.progress,
        checkpoint=folder / "checkpoint", output=folder / "out",
    )  # fmt: skip
    return job


def stopped_in_the_first_batch(job: sp.Job) -> sp.StreamHandle:
    """Return the handle of a query whose first batch ends when its stop has begun, so that no further one begins."""
    stopped = Event()

    def stop(handle: sp.StreamHandle, _: sp.BatchMetrics) -> None:
        handle._lifecycle._stopping.set()  # type: ignore[attr-defined]  # what stop() does first
        stopped.set()

    handle = start_knowing(job, stop)
    assert stopped.wait(60)
    handle.stop()
    return handle


@pytest.mark.parametrize("asked", [QUERY, SEVERAL], ids=["one query", "several"])
def test_a_drain_is_refused_while_rows_wait_and_changes_nothing(session: Session, tmp_path: Path, asked: Any):
    handle = stopped_in_the_first_batch(job_of(session, tmp_path, asked))
    left = len(BATCHES) - len(handle.recent_metrics())
    assert left > 0
    before = jobs.latest(tmp_path)
    for _ in range(2):
        with pytest.raises(sp.SkypaneError, match=rf"not complete: {left} tables wait to be read.*drain\(now=True\)"):
            handle.drain()
    assert jobs.latest(tmp_path) == before
    assert not jobs.ledger_of(tmp_path).drain_begun
    seen = drained(job_of(session, tmp_path, asked))
    assert seen[-1].totals["late"] == 0
    if asked is QUERY:
        assert windows_of(parquet_rows(tmp_path / "out")) == expected(PLAN, [*BATCHES, local.Drain()])


def test_now_drains_all_the_same_and_what_comes_afterwards_is_counted_as_late(session: Session, tmp_path: Path):
    handle = stopped_in_the_first_batch(job_of(session, tmp_path))
    read = len(handle.recent_metrics())
    assert handle.drain(now=True) is not None
    events = [*BATCHES[:read], local.Drain(), *BATCHES[read:], local.Drain()]
    *_, last = local.run(PLAN, events)
    seen = drained(job_of(session, tmp_path))
    assert seen[-1].totals == last.totals.to_json()
    assert last.totals.late > 0, "the case needs rows that the drain makes late"
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PLAN, events)


def test_a_query_that_has_ended_by_itself_has_nothing_waiting(session: Session, tmp_path: Path):
    handle = ended(job_of(session, tmp_path))
    assert handle.drain() is not None
    assert ended(job_of(session, tmp_path)).drain() is None


@pytest.mark.parametrize("more", [0, 1])
def test_a_batch_that_has_begun_waits_unless_it_has_no_rows(session: Session, tmp_path: Path, more: int):
    """As when Spark begins one during a stop, or a driver was killed in it; the first has rows, the other is of a stateful operator."""
    handle = ended(job_of(session, tmp_path))
    log = BatchLog(tmp_path / "checkpoint")
    number, _, end = log.next(len(BATCHES) + 1, lambda: 1) or pytest.fail("no batch has begun")
    offsets = tmp_path / "checkpoint" / "offsets" / str(number)
    text = offsets.read_text()
    offsets.write_text(text.replace(f'"tables": {end}', f'"tables": {end - 1 + more}'))
    if more:
        with pytest.raises(sp.SkypaneError, match="the rows of a batch that has begun wait"):
            handle.drain()
    else:
        assert handle.drain() is not None
