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
from tests.engine.test_amended import (
    QUERIES,
    assert_counted_and_kept,
    expected,
    job_of,
    last,
    plan_of,
    run,
    versions_of,
)
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import SECOND, ended, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime import local
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.sinks.directory import Directory
from skypane.testing import Session

REASON = "null price"
QUERY = QUERIES["skyline"]
PLAN = plan_of(QUERY)


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


def assert_as_defined(folder: Path, events: list[local.Event]) -> None:
    wanted = expected(PLAN, events)
    assert versions_of(parquet_rows(folder / "out")) == wanted
    assert current(folder) == last(wanted)
    assert_counted_and_kept(folder, PLAN, events)


def ended_after(session: Session, folder: Path, batches: list[pa.Table], **options: Any) -> sp.StreamHandle:
    """Run the job over these batches; return its handle."""
    write_batches(folder / "in", batches)
    return ended(job_of(session, folder, QUERY, **options))


def test_repaired_rows_enter_their_windows_once(session: Session, tmp_path: Path):
    batches = batches_with_nulls()
    handle = ended_after(session, tmp_path, batches[:4])
    first = readmission(PLAN, [*batches[:4]])
    metrics = handle.readmit(REASON, repair)
    assert metrics is not None
    assert metrics.rows == first.rows.num_rows > 0
    assert metrics.amended is not None
    assert metrics.amended["rows"] > 0
    events: list[local.Event] = [*batches[:4], first]
    assert_as_defined(tmp_path, events)
    with pytest.raises(sp.ConfigError, match=r"no rows to readmit: .* rejected for 'null price'"):
        handle.readmit(REASON, repair)
    run(session, tmp_path, QUERY, batches[4:], first=4)
    assert_as_defined(tmp_path, [*events, *batches[4:]])


def _fails(*_: object) -> None:
    raise OSError("the end comes here")


def _commits_and_fails(*arguments: Any, commit: Callable[..., None] = Ledger.commit) -> None:
    commit(*arguments)
    _fails()


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [(Directory, "write", _fails), (Ledger, "commit", _fails), (Ledger, "commit", _commits_and_fails)],
    ids=["before the sink", "after the sink", "after the commit"],
)
def test_a_readmission_that_is_interrupted_is_finished_by_the_next_start(
    owner: type, name: str, instead: Callable[..., None], session: Session, tmp_path: Path
):
    """With the rows that were repaired then, before any other batch."""
    batches = batches_with_nulls()
    handle = ended_after(session, tmp_path, batches[:4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, instead)
        with pytest.raises(OSError, match="the end comes here"):
            handle.readmit(REASON, repair)
    run(session, tmp_path, QUERY, batches[4:], first=4)
    assert_as_defined(tmp_path, [*batches[:4], readmission(PLAN, [*batches[:4]]), *batches[4:]])


def test_a_clock_that_was_ahead_is_set_right(session: Session, tmp_path: Path):
    """Rows of the future move nothing; without a repair they are of the future again, and can come back later."""
    batches, policy = late_rows(42, batches=4, rows=80), sp.Watermark("1 second", max_ahead="10 minutes", patience=20)
    ahead = pc.equal(pc.bit_wise_and(batches[1]["id"], 15), 3)
    shifted = pc.add(batches[1]["ts"].cast(pa.int64()), pa.scalar(86_400 * SECOND))
    times = pc.if_else(ahead, shifted, batches[1]["ts"].cast(pa.int64())).cast(batches[1].schema.field("ts").type)
    batches[1] = batches[1].set_column(1, "ts", times)
    handle = ended_after(session, tmp_path, batches, progress=policy, late=sp.Amend("1 day", then=tmp_path / "late"))
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
    handle = ended_after(session, tmp_path, batches_with_nulls()[:2])
    with pytest.raises(
        sp.ConfigError, match="rejected for 'null rating'; there are rows with the reasons 'null price'"
    ):
        handle.readmit("null rating")
    with pytest.raises(sp.ConfigError, match="repair must return the columns of the rows; price are missing"):
        handle.readmit(REASON, lambda rows: rows.drop("price"))
    with pytest.raises(sp.ConfigError, match="repair must not add rows: it got 20 and returned 40"):
        handle.readmit(REASON, twice)


def test_rows_that_are_only_counted_cannot_come_back(session: Session, tmp_path: Path):
    handle = ended_after(session, tmp_path, batches_with_nulls()[:1], late=sp.Amend("1 day"))
    with pytest.raises(sp.ConfigError, match="from a folder of parquet: name one as late="):
        handle.readmit(REASON)


def test_a_continuous_skyline_takes_nothing_back(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", batches_with_nulls()[:1])
    rows = read_batches(session, tmp_path / "in", SCHEMA)
    own: dict[str, Any] = {"checkpoint": tmp_path / "c", "output": sp.Memory(), "late": tmp_path / "late"}
    handle = ended(sp.continuous_skyline(rows, "price MIN", time="ts", window="1 minute", **own))
    with pytest.raises(sp.ConfigError, match="not to a continuous skyline"):
        handle.readmit(REASON)
