"""Spark's early answers against runtime/local.py, which defines them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.engine import jobs
from tests.engine.reading import current
from tests.engine.test_amended import (
    POLICY,
    QUERIES,
    WINDOWS,
    Versions,
    assert_counted_and_kept,
    expected,
    job_of,
    plan_of,
    run,
    versions_of,
    with_weight_as,
)
from tests.engine.test_amended import last as rows_of_ended
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import SECOND, ended, finish, late_rows, parquet_rows, write_batches

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.windows import Windows

EVERY = 5 * SECOND


def early_plan(query: Query, *, amend: bool = True) -> Plan:
    plan = replace(plan_of(query), early=EVERY)
    return plan if amend else replace(plan, amend=None)


def assert_as_defined(folder: Path, plan: Plan, events: Sequence[local.Event]) -> None:
    """Output, counts and files are those of the definition, and windows were answered early, some of them often."""
    wanted = expected(plan, events)
    assert max(sum(early for early, _ in versions) for versions in wanted.values()) > 1
    assert versions_of(parquet_rows(folder / "out")) == wanted
    assert_counted_and_kept(folder, plan, events)


def last(versions: Versions) -> dict[Any, tuple[bool, Counter[str]]]:
    """Return the last version of each window, if it has rows."""
    return {start: each[-1] for start, each in versions.items() if each[-1][1]}


@pytest.mark.core
@pytest.mark.parametrize("amend", [True, False])
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_answers_early_as_the_oracle(name: str, amend: bool, session: Session, tmp_path: Path):
    batches, query = late_rows(31, batches=8, rows=90), QUERIES[name]
    late: dict[str, Any] = {} if amend else {"late": tmp_path / "late"}
    seen = run(session, tmp_path, query, batches, early="5 seconds", **late)
    plan = early_plan(query, amend=amend)
    assert_as_defined(tmp_path, plan, batches)
    for metrics, outcome in zip(seen, local.run(plan, batches), strict=True):
        assert metrics.early_windows == sum(answer.early for answer in outcome.answers)
        amended = 0 if outcome.amended is None else outcome.amended.windows
        assert metrics.windows == sum(not answer.early for answer in outcome.answers) - amended
    assert "answered early" in str(seen[0])
    assert current(tmp_path) == rows_of_ended(expected(plan, batches))


@pytest.mark.parametrize("name", ["skyline", "aggregate that loses its rows"])
def test_workers_answer_early_as_the_driver(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    jobs.answer_on_workers(monkeypatch)
    batches, query = late_rows(32, batches=8, rows=90), QUERIES[name]
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=3)
    seen = run(session, tmp_path, query, batches, workers=workers, early="5 seconds")
    assert {metrics.wlq_where for metrics in seen} & {"spark", "threads"}
    assert_as_defined(tmp_path, early_plan(query), batches)


@pytest.mark.parametrize("where", ["driver", "workers"])
def test_changes_add_up_to_the_early_answers(
    where: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The partials of the last early answers are kept over a restart, since their rows are removed later."""
    if where == "workers":
        jobs.answer_on_workers(monkeypatch)
    batches, query = late_rows(37, batches=8, rows=90), QUERIES["aggregate that loses its rows"]
    late, workers = sp.Amend("12 seconds", changes=True), sp.WorkerOptions(wlq_workers=3)
    for first, some in ((0, batches[:5]), (5, batches[5:])):
        run(session, tmp_path, query, some, first, late=late, early="5 seconds", workers=workers)
    table = parquet_rows(tmp_path / "out")
    assert {("DEL", True), ("ADD", True), ("ADD", False)} <= set(
        zip(table["action"].to_pylist(), table["early"].to_pylist(), strict=True)
    )
    assert current(tmp_path) == rows_of_ended(expected(early_plan(query), batches))


def test_windows_are_answered_early_over_drains_and_restarts(session: Session, tmp_path: Path):
    batches, query = late_rows(33, batches=9, rows=90), QUERIES["skyline"]
    events: list[local.Event] = []
    for first in (0, 3, 6):
        write_batches(tmp_path / "in", batches[first : first + 3], first=first)
        handle = ended(job_of(session, tmp_path, query, early="5 seconds"))
        events += batches[first : first + 3]
        if first != 3:  # the second start ends with open windows
            assert handle.drain() is not None
            events.append(local.Drain())
    assert_as_defined(tmp_path, early_plan(query), events)
    assert current(tmp_path) == {start: rows for start, (_, rows) in last(expected(early_plan(query), events)).items()}


def test_a_stream_that_is_replayed_gives_the_same_versions(session: Session, tmp_path: Path):
    """The span is one of event time: pauses and restarts change nothing."""
    batches, query = late_rows(34, batches=8, rows=90), QUERIES["top-k"]
    for folder, starts in ((tmp_path / "once", [0]), (tmp_path / "often", [0, 1, 3])):
        for first, end in pairwise([*starts, len(batches)]):
            run(session, folder, query, batches[first:end], first, early="5 seconds")
    assert versions_of(parquet_rows(tmp_path / "once/out")) == versions_of(parquet_rows(tmp_path / "often/out"))


def test_early_may_be_added_and_changed_and_is_removed_after_a_drain(session: Session, tmp_path: Path):
    """Until then a job without it would leave the early answers as the last ones."""
    batches, query = late_rows(35, batches=6, rows=90), QUERIES["skyline"]
    late = tmp_path / "late"
    run(session, tmp_path, query, batches[:2], late=late)
    run(session, tmp_path, query, batches[2:4], first=2, late=late, early="5 seconds")
    with pytest.raises(sp.CheckpointError, match=r"early answers of \d+ open windows, which a job without"):
        job_of(session, tmp_path, query, late=late).start()
    assert ended(job_of(session, tmp_path, query, late=late, early="9 seconds")).drain() is not None
    run(session, tmp_path, query, batches[4:], first=4, late=late)
    whole = replace(early_plan(query, amend=False), early=None)
    assert current(tmp_path) == rows_of_ended(expected(whole, [*batches[:4], local.Drain(), *batches[4:]]))


def test_each_of_several_queries_answers_early_as_alone(session: Session, tmp_path: Path):
    batches = late_rows(31, batches=8, rows=90)
    write_batches(tmp_path / "in", batches)
    windows = {"best": WINDOWS, "load": Windows(40 * SECOND, 10 * SECOND)}
    asked = {"best": QUERIES["skyline"], "load": QUERIES["aggregate"]}
    own: dict[str, Any] = {"window": windows, "progress": POLICY, "late": sp.Amend("12 seconds"), "early": "5 seconds"}
    job = jobs.job_of(session, tmp_path, asked, SCHEMA, **own)
    assert "early answers: every 5 seconds of ts" in repr(job)
    seen = finish(job)
    for name, query in asked.items():
        plan = Plan(query, windows[name], "ts", POLICY, amend=AmendRule(12 * SECOND), early=EVERY)
        wanted = expected(plan, [table.select(plan.reads(table.schema)) for table in batches])
        assert versions_of(parquet_rows(tmp_path / "out" / name)) == wanted, name
    assert sum(metrics.early_windows for metrics in seen) > len(batches)


def test_versions_continue_when_a_query_changes(session: Session, tmp_path: Path):
    """A function that was added is null in early answers of windows that hold rows read before, too."""
    batches = late_rows(31, batches=8, rows=90)
    counting = sp.Aggregate("sensor", n=sp.count())
    more = sp.Aggregate("sensor", n=sp.count(), best=sp.max("rating"))
    for first, query in ((0, counting), (4, more)):
        run(session, tmp_path, query, batches[first : first + 4], first, early="5 seconds", late=tmp_path / "late")
    files = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    written = pa.concat_tables(files, promote_options="default")
    assert versions_of(written.drop_columns("best")) == expected(early_plan(counting, amend=False), batches)
    known = written.filter(pc.is_valid(written["best"]))
    assert set(known["early"].to_pylist()) == {True, False}


def test_a_query_does_not_change_while_its_early_answers_are_to_be_removed(session: Session, tmp_path: Path):
    """The rows of the earlier query's answers could not be computed again, as changes need them."""
    write_batches(tmp_path / "in", late_rows(36, batches=3, rows=90))

    def job(having: str | None = None) -> sp.Job:
        query = sp.Aggregate("sensor", n=sp.count(), having=having)
        return job_of(session, tmp_path, query, late=sp.Amend("12 seconds", changes=True), early="5 seconds")

    finish(job())
    (reason,) = job(having="n > 3").changes().refused
    assert "open windows have early answers as changes" in reason
    with pytest.raises(sp.CheckpointError, match=r"query.having was None"):
        job(having="n > 3").start()
    ended(job()).drain()
    assert job(having="n > 3").changes().refused == ()


@pytest.mark.parametrize(
    ("early", "problem"), [("0 seconds", "early must be longer than 0, got '0 seconds'"), (3, "unit")]
)
def test_a_span_that_makes_no_sense_is_refused(early: Any, problem: str, session: Session, tmp_path: Path):
    with pytest.raises(sp.ConfigError, match=problem):
        job_of(session, tmp_path, QUERIES["skyline"], early=early)


def test_a_job_shows_that_it_answers_early(session: Session, tmp_path: Path):
    job = job_of(session, tmp_path, QUERIES["skyline"], early="5 seconds")
    assert "early answers: every 5 seconds of ts" in repr(job)
    named = with_weight_as("Early")
    with pytest.raises(sp.ConfigError, match="version, early and empty: rename Early"):
        job_of(session, tmp_path, QUERIES["skyline"], named, early="5 seconds")
    job_of(session, tmp_path, QUERIES["skyline"], named)
