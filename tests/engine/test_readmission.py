"""Rejected rows that come a second time, repaired: against runtime/local.py, once, and through failures at exact places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame
from tests.engine.reading import current
from tests.engine.test_amended import QUERIES, expected, job_of, last, plan_of, versions_of
from tests.runtime.streams import SECOND, finish, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.sinks.directory import Directory
from skypane.testing import Session

REASON = "null price"
QUERY = QUERIES["skyline"]


def batches_with_nulls() -> list[pa.Table]:
    """Return late rows, every seventh of which has no price."""
    return [
        batch.set_column(
            3,
            "price",
            pc.if_else(pc.equal(pc.bit_wise_and(batch["id"], 7), 3), pa.scalar(None, pa.float64()), batch["price"]),
        )
        for batch in late_rows(41, batches=6, rows=80)
    ]


def by_arrow(change: Callable[[pa.Table], pa.Table]) -> Callable[[DataFrame], DataFrame]:
    """Return a repair that changes rows as a table; with Spark it could be any DataFrame of the rows."""
    return lambda rows: rows.sparkSession.createDataFrame(change(rows.toArrow()), rows.schema)


@by_arrow
def repair(rows: pa.Table) -> pa.Table:
    return rows.set_column(3, "price", pc.fill_null(rows["price"], 1.0))


@by_arrow
def a_day_earlier(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "ts", pc.subtract(rows["ts"], pa.scalar(86_400 * SECOND, pa.duration("us"))))


@by_arrow
def twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows])


def readmission(plan: Any, events: list[local.Event], reason: str = REASON) -> local.Readmission:
    """Return the rows that the definition rejects, repaired."""
    rejected = [rows for outcome in local.run(plan, events) for rows in outcome.rejection.rows]
    rows = pa.concat_tables(rejected).filter(pc.field("reason") == reason).drop_columns("reason")
    return local.Readmission(rows.set_column(3, "price", pc.fill_null(rows["price"], 1.0)), reason)


def assert_as_defined(folder: Path, events: list[local.Event], within: int = 12) -> None:
    plan = plan_of(QUERY, within)
    wanted = expected(plan, events)
    assert versions_of(parquet_rows(folder / "out")) == wanted
    assert current(folder) == last(wanted)
    totals = list(local.run(plan, events))[-1].totals
    ledger = Ledger(DocumentStore.at(str(folder / "checkpoint" / "skypane")))
    assert ledger.history(1)[0]["totals"] == totals.to_json()
    manifest = ledger.latest()
    assert manifest is not None
    panes = (manifest.operator["panes"], manifest.operator["closed"]["panes"])
    named = {ref[0] for kept in panes for refs in kept.values() for ref in refs}
    assert {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()} == named


def test_repaired_rows_enter_their_windows_once(session: Session, tmp_path: Path):
    batches, plan = batches_with_nulls(), plan_of(QUERY)
    write_batches(tmp_path / "in", batches[:4])
    handle = job_of(session, tmp_path, QUERY, batches[0].schema).start(trigger="available now")
    assert handle.await_termination(600)
    first = readmission(plan, [*batches[:4]])
    metrics = handle.readmit(REASON, repair)
    assert metrics is not None
    assert metrics.rows == first.rows.num_rows > 0
    assert metrics.amended is not None
    assert metrics.amended["rows"] > 0
    events: list[local.Event] = [*batches[:4], first]
    assert_as_defined(tmp_path, events)
    with pytest.raises(sp.ConfigError, match=r"no rows to readmit: .* rejected for 'null price'"):
        handle.readmit(REASON, repair)
    write_batches(tmp_path / "in", batches[4:], first=4)
    finish(job_of(session, tmp_path, QUERY, batches[0].schema))
    assert_as_defined(tmp_path, [*events, *batches[4:]])


def _before_the_sink(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Directory, "write", _fails)


def _after_the_sink(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "commit", _fails)


def _after_the_commit(patch: pytest.MonkeyPatch) -> None:
    commit = Ledger.commit

    def failing(ledger: Ledger, manifest: Any) -> None:
        commit(ledger, manifest)
        _fails()

    patch.setattr(Ledger, "commit", failing)


def _fails(*_: object) -> None:
    raise OSError("the end comes here")


@pytest.mark.parametrize("place", [_before_the_sink, _after_the_sink, _after_the_commit])
def test_a_readmission_that_is_interrupted_is_finished_by_the_next_start(
    place: Callable[[pytest.MonkeyPatch], None], session: Session, tmp_path: Path
):
    """With the rows that were repaired then, before any other batch."""
    batches = batches_with_nulls()
    write_batches(tmp_path / "in", batches[:4])
    handle = job_of(session, tmp_path, QUERY, batches[0].schema).start(trigger="available now")
    assert handle.await_termination(600)
    with pytest.MonkeyPatch.context() as patch:
        place(patch)
        with pytest.raises(OSError, match="the end comes here"):
            handle.readmit(REASON, repair)
    write_batches(tmp_path / "in", batches[4:], first=4)
    finish(job_of(session, tmp_path, QUERY, batches[0].schema))
    assert_as_defined(tmp_path, [*batches[:4], readmission(plan_of(QUERY), [*batches[:4]]), *batches[4:]])


def test_a_clock_that_was_ahead_is_set_right(session: Session, tmp_path: Path):
    """Rows of the future move nothing; without a repair they are of the future again, and can come back later."""
    batches, policy = late_rows(42, batches=4, rows=80), sp.Watermark("1 second", max_ahead="10 minutes", patience=20)
    ahead = pc.equal(pc.bit_wise_and(batches[1]["id"], 15), 3)
    shifted = pc.add(batches[1]["ts"].cast(pa.int64()), pa.scalar(86_400 * SECOND))
    times = pc.if_else(ahead, shifted, batches[1]["ts"].cast(pa.int64())).cast(batches[1].schema.field("ts").type)
    batches[1] = batches[1].set_column(1, "ts", times)
    write_batches(tmp_path / "in", batches)
    late = sp.Amend("1 day", then=tmp_path / "late")
    handle = job_of(session, tmp_path, QUERY, batches[0].schema, progress=policy, late=late).start(
        trigger="available now"
    )
    assert handle.await_termination(600)
    unrepaired = handle.readmit("future")
    assert unrepaired is not None
    assert unrepaired.quarantined == {"future": 5}
    repaired = handle.readmit("future", a_day_earlier)
    assert repaired is not None
    assert (repaired.rows, repaired.quarantined, repaired.punctuation) == (5, {}, unrepaired.punctuation)
    assert repaired.amended is not None
    assert repaired.amended["rows"] == 5
    assert repaired.totals["quarantined"] == 0
    assert repaired.totals["read"] == 320


def test_what_cannot_be_readmitted_is_refused(session: Session, tmp_path: Path):
    batches = batches_with_nulls()[:2]
    write_batches(tmp_path / "in", batches)
    handle = job_of(session, tmp_path, QUERY, batches[0].schema).start(trigger="available now")
    assert handle.await_termination(600)
    with pytest.raises(
        sp.ConfigError, match="rejected for 'null rating'; there are rows with the reasons 'null price'"
    ):
        handle.readmit("null rating")
    with pytest.raises(sp.ConfigError, match="repair must return the columns of the rows; price are missing"):
        handle.readmit(REASON, lambda rows: rows.drop("price"))
    with pytest.raises(sp.ConfigError, match="repair must not add rows: it got 20 and returned 40"):
        handle.readmit(REASON, twice)


def test_rows_that_are_only_counted_cannot_come_back(session: Session, tmp_path: Path):
    batches = batches_with_nulls()[:1]
    write_batches(tmp_path / "in", batches)
    handle = job_of(session, tmp_path, QUERY, batches[0].schema, late=sp.Amend("1 day")).start(trigger="available now")
    assert handle.await_termination(600)
    with pytest.raises(sp.ConfigError, match="from a folder of parquet: name one as late="):
        handle.readmit(REASON)


def test_a_continuous_skyline_takes_nothing_back(session: Session, tmp_path: Path):
    batches = batches_with_nulls()[:1]
    write_batches(tmp_path / "in", batches)
    rows = read_batches(session, tmp_path / "in", batches[0].schema)
    job = sp.continuous_skyline(
        rows,
        "price MIN",
        time="ts",
        window="1 minute",
        checkpoint=tmp_path / "c",
        output=sp.Memory(),
        late=tmp_path / "late",
    )
    handle = job.start(trigger="available now")
    assert handle.await_termination(600)
    with pytest.raises(sp.ConfigError, match="not to a continuous skyline"):
        handle.readmit(REASON)
