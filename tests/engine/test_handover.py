"""A query that takes over from another one with open windows, on Spark: killed, restarted and drained on the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.engine.jobs import drain_without_commit, latest
from tests.engine.test_query_changes import BATCHES, HALF, Answers, aggregate, answers, by_window, killed, listed
from tests.runtime.driver import SKYLINE, WINDOWS, Task, job_of
from tests.runtime.streams import SECOND, AnySession, CountBySensor, ended, finish, parquet_rows, write_batches

import skypane as sp
from skypane.operators.query import Query
from skypane.operators.stay_columns import are_stays, expanded
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.engine.handover import RECORD
from skypane.testing import Session
from skypane.windows import Windows

TUMBLING, SLIDING = Windows(30 * SECOND, 30 * SECOND), Windows(70 * SECOND, 30 * SECOND)
TOP = sp.TopK(2, "price", "sensor")
PAIRS: dict[str, tuple[Query, Query, Windows]] = {
    "shorter windows, and more columns": (aggregate(), TOP, TUMBLING),
    "longer windows, and fewer columns": (SKYLINE, sp.Aggregate("sensor", rows=sp.count()), SLIDING),
    "the same windows": (TOP, sp.KDominant(1, "price MIN, rating MAX", "sensor"), WINDOWS),
}
OLD, NEW, ITS = PAIRS["shorter windows, and more columns"]

Began = Callable[..., Task]


@pytest.fixture
def began(session: Session, tmp_path: Path) -> Began:
    """Return a function that runs a query over the first batches, and writes those up to `until`; it returns its task."""

    def run(query: Query = OLD, *, late: bool = False, until: int | None = None) -> Task:
        task = Task(str(tmp_path), late=late)
        write_batches(tmp_path / "in", BATCHES[:HALF])
        finish(job_of(session, task, query))
        write_batches(tmp_path / "in", BATCHES[HALF:until], first=HALF)
        return task

    return run


def job(session: AnySession, task: Task, query: Query = NEW, windows: Windows = ITS, **options: Any) -> sp.Job:
    """Return the job of another query, into the folder of the earlier one."""
    return job_of(session, task, query, **{"window": windows, "slide": None} | options)


def begin_of(job: sp.Job) -> datetime:
    """Return the start of the first window of a query that takes over, as its changes state it."""
    (text,) = job.changes("at_offsets").begins
    found = re.search(r"its first window is (.*?) to ", text)
    assert found is not None, text
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)


def both(old: Query, new: Query, windows: Windows, begin: datetime, events: list[local.Event]) -> Answers:
    """Return what both queries answer: one the windows that begin before a time, the other those from it on."""
    earlier = by_window(local.answers(Plan(old, WINDOWS, "ts", sp.Watermark("20 seconds")), events))
    later = by_window(local.answers(Plan(new, windows, "ts", sp.Watermark("20 seconds")), events))
    expected = {window: rows for window, rows in earlier.items() if window < begin}
    assert expected
    assert any(window >= begin for window in later)
    return expected | {window: rows for window, rows in later.items() if window >= begin}


def operator(task: Task) -> dict[str, Any]:
    """Return the state of the operators in the newest manifest."""
    return latest(Path(task.folder)).operator


def rejected(plan: Plan) -> dict[tuple[int, str], datetime | None]:
    """Return the times of the rows that a query rejects, by id and reason."""
    tables = [table for outcome in local.run(plan, BATCHES) for table in outcome.rejection.rows]
    rows = pa.concat_tables(tables).to_pylist()
    return {(row["id"], row["reason"]): row["ts"] for row in rows}


@pytest.mark.parametrize(("old", "new", "windows"), PAIRS.values(), ids=PAIRS.keys())
def test_the_earlier_query_answers_the_windows_that_begin_before_the_first_of_the_new_one(
    old: Query, new: Query, windows: Windows, began: Began, session: Session, monkeypatch: pytest.MonkeyPatch
):
    task = began(old)
    files = listed(Path(task.folder) / "checkpoint")
    change = job(session, task, new, windows).changes("at_offsets")
    begin = begin_of(job(session, task, new, windows))
    assert listed(Path(task.folder) / "checkpoint") == files, "to show a change changes nothing"
    assert f"windows that begin before {begin:%Y-%m-%d %H:%M}" in change.kept[0]
    for place in ("before the sink", "before the commit"):
        killed(place, job(session, task, new, windows), monkeypatch, begin="at_offsets")
        assert begin_of(job(session, task, new, windows)) == begin
    metrics = finish(job(session, task, new, windows), begin="at_offsets")
    assert metrics[0].queries.keys() == {"earlier", "new"}
    assert not metrics[-1].queries, "the earlier query has answered its last window"
    assert RECORD not in operator(task)
    assert not job(session, task, new, windows).changes()
    assert answers(Path(task.folder) / "out") == both(old, new, windows, begin, BATCHES)


def test_a_start_on_the_way_continues_both_queries(began: Began, session: Session, monkeypatch: pytest.MonkeyPatch):
    task = began(until=HALF + 1)
    folder = Path(task.folder)
    begin = begin_of(job(session, task))
    finish(job(session, task), begin="at_offsets")
    assert RECORD in operator(task)
    assert not job(session, task).changes()
    for other in (OLD, TOP, sp.TopK(1, "price", "sensor")):
        change = job_of(session, task, other).changes("at_offsets")
        assert "has taken over from an earlier one" in change.refused[0]
    with pytest.raises(sp.SkypaneError, match="cannot be readmitted while an earlier query"):
        job(session, task).readmit("late")
    files = listed(folder / "checkpoint")
    with pytest.raises(sp.CheckpointError, match="has to answer its last windows, and cannot: the new query amends"):
        job(session, task, late=sp.Amend("1 hour")).start()
    assert listed(folder / "checkpoint") == files
    for number in range(HALF + 1, len(BATCHES)):
        write_batches(folder / "in", BATCHES[number : number + 1], first=number)
        for place in ("before the sink", "before the commit"):
            if RECORD in operator(task):
                killed(place, job(session, task), monkeypatch)
        finish(job(session, task))
    assert RECORD not in operator(task)
    assert answers(folder / "out") == both(OLD, NEW, ITS, begin, BATCHES)


def test_both_queries_write_stays(began: Began, session: Session, monkeypatch: pytest.MonkeyPatch):
    """The earlier query has written the rows of windows, and writes its last windows as the new job writes its own."""
    task = began()
    begin = begin_of(job(session, task, answers="stays"))
    killed("before the commit", job(session, task, answers="stays"), monkeypatch, begin="at_offsets")
    finish(job(session, task, answers="stays"), begin="at_offsets")
    found: Answers = {}
    columns = set()
    for path in sorted((Path(task.folder) / "out").glob("*.parquet")):
        rows = pq.read_table(path)
        if are_stays(rows.schema):
            columns.add(tuple(rows.column_names))
            rows = expanded(rows)
        for row in rows.to_pylist():
            found.setdefault(row["window_start"], Counter())[repr(row)] += 1
    assert found == both(OLD, NEW, ITS, begin, BATCHES)
    assert len(columns) == 2, "of each query"


def test_a_drain_on_the_way_answers_the_windows_of_both(
    began: Began, session: Session, monkeypatch: pytest.MonkeyPatch
):
    task = began(until=HALF + 1)
    begin = begin_of(job(session, task))
    handle = ended(job(session, task), begin="at_offsets")
    assert RECORD in operator(task)
    drain_without_commit(handle, monkeypatch)
    handle = ended(job(session, task))  # finishes the drain of the earlier query
    assert RECORD not in operator(task)
    handle.drain()
    assert not operator(task)["panes"]
    events = [*BATCHES[: HALF + 1], local.Drain()]
    assert answers(Path(task.folder) / "out") == both(OLD, NEW, ITS, begin, events)


def test_a_row_that_one_of_both_rejects_is_in_the_late_sink_once_for_each_reason(began: Began, session: Session):
    task = began(late=True)
    begin = begin_of(job(session, task))
    finish(job(session, task), begin="at_offsets")
    assert answers(Path(task.folder) / "out") == both(OLD, NEW, ITS, begin, BATCHES)
    rows = parquet_rows(Path(task.folder) / "late").to_pylist()
    got = [(row["id"], row["reason"]) for row in rows]
    assert len(got) == len({*got})
    earlier = rejected(Plan(OLD, WINDOWS, "ts", sp.Watermark("20 seconds")))
    later = rejected(Plan(NEW, ITS, "ts", sp.Watermark("20 seconds")))
    needed = {row for row, time in earlier.items() if time is None or time < begin}
    needed |= {row for row, time in later.items() if time is not None and time >= begin}
    assert needed <= {*got}
    assert {*got} <= {*earlier, *later}


def test_each_row_is_answered_by_one_of_both_or_rejected(session: Session, tmp_path: Path):
    task = Task(str(tmp_path))
    options: dict[str, Any] = {"window": "20 s", "slide": None, "progress": sp.Watermark("10 seconds")}
    old, new = sp.Aggregate(rows=sp.count()), sp.Aggregate("sensor", rows=sp.count(), total=sp.sum("weight"))
    write_batches(tmp_path / "in", BATCHES[:HALF])
    finish(job_of(session, task, old, **options))
    write_batches(tmp_path / "in", BATCHES[HALF:], first=HALF)
    ended(job_of(session, task, new, **options), begin="at_offsets").drain()
    tables = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    earlier = [table for table in tables if "sensor" not in table.schema.names]
    later = [table for table in tables if "sensor" in table.schema.names]
    assert earlier
    assert later
    last = max(pc.max(table["window_start"]).as_py() for table in earlier)
    assert last < min(pc.min(table["window_start"]).as_py() for table in later)
    answered = sum(pc.sum(table["rows"]).as_py() for table in tables)
    assert answered + parquet_rows(tmp_path / "late").num_rows == sum(batch.num_rows for batch in BATCHES)


@pytest.mark.parametrize(
    ("old", "options", "why"),
    [
        (CountBySensor(), {}, "'count_by_sensor', can be run only by its own code"),
        (OLD, {"progress": sp.KSlack()}, "its policy, Watermark, is not that of the new query, KSlack"),
        (OLD, {"source": "sensor"}, "its source, None, is not that of the new query, 'sensor'"),
        (OLD, {"late": sp.Amend("1 hour")}, "the new query amends its answers"),
        (OLD, {"early": "10 seconds"}, "the new query answers windows early"),
    ],
)
def test_a_query_that_cannot_run_beside_the_new_one_has_to_be_drained(
    old: Query, options: dict[str, Any], why: str, began: Began, session: Session
):
    task = began(old, until=HALF)
    change = job(session, task, **options).changes("at_offsets")
    assert why in change.refused[-1]
    assert change.refused[-1].endswith("with drain() or `skypane run JOB --drain`")
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        job(session, task, **options).start(begin="at_offsets")
