"""Spark's early answers against runtime/local.py, which defines them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.reading import current
from tests.engine.test_amended import POLICY, QUERIES, WINDOWS, job_of, plan_of
from tests.runtime.streams import SECOND, finish, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.placement import place_windows
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.testing import Session
from skypane.windows import Windows

EVERY = 5 * SECOND
Versions = dict[Any, list[tuple[bool, Counter[str]]]]
"""By the start of each window: whether a version is early, and its rows."""


def early_plan(query: Query, *, amend: bool = True) -> Plan:
    plan = replace(plan_of(query), early=EVERY)
    return plan if amend else replace(plan, amend=None)


def versions_of(answers: pa.Table) -> Versions:
    """Return the versions in an output; they are whole and consecutive."""
    found: dict[Any, dict[int, tuple[bool, Counter[str]]]] = defaultdict(dict)
    for row in answers.to_pylist():
        early, empty = row.pop("early"), row.pop("empty")
        known, rows = found[row.pop("window_start")].setdefault(row.pop("version"), (early, Counter()))
        assert known == early
        if not empty:
            rows[repr(row)] += 1
    for versions in found.values():
        assert sorted(versions) == list(range(len(versions)))
    return {start: [versions[number] for number in sorted(versions)] for start, versions in found.items()}


def expected(plan: Plan, events: Sequence[local.Event]) -> Versions:
    """Return the versions by the definition."""
    found: Versions = defaultdict(list)
    some = next(event for event in events if isinstance(event, pa.Table))
    stamp = plan.window_query(some.schema).stamp
    for answer in local.answers(plan, events):
        start = stamp(answer.window, some.slice(0, 1))["window_start"].to_pylist()[0]
        rows = answer.rows.drop_columns(["window_start", "version", "early", "empty"]).to_pylist()
        found[start].append((answer.early, Counter(map(repr, rows))))
    return dict(found)


def assert_as_defined(folder: Path, plan: Plan, events: Sequence[local.Event]) -> None:
    """Output, counts and files are those of the definition, and windows were answered early, some of them often."""
    wanted = expected(plan, events)
    assert max(sum(early for early, _ in versions) for versions in wanted.values()) > 1
    assert versions_of(parquet_rows(folder / "out")) == wanted
    ledger = Ledger(DocumentStore.at(str(folder / "checkpoint" / "skypane")))
    last, manifest = sp.BatchMetrics.from_json(ledger.history(1)[0]), ledger.latest()
    *_, outcome = local.run(plan, events)
    assert last.totals == outcome.totals.to_json()
    assert manifest is not None
    state = WindowState.restored(plan, manifest.progress, manifest.operator)
    assert {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()} == state.files


def ended(versions: Versions) -> dict[Any, Counter[str]]:
    """Return the rows of the last version of each window that has ended, if it has rows."""
    return {start: rows for start, (early, rows) in last(versions).items() if not early}


def last(versions: Versions) -> dict[Any, tuple[bool, Counter[str]]]:
    """Return the last version of each window, if it has rows."""
    return {start: each[-1] for start, each in versions.items() if each[-1][1]}


@pytest.mark.core
@pytest.mark.parametrize("amend", [True, False])
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_answers_early_as_the_oracle(name: str, amend: bool, session: Session, tmp_path: Path):
    batches, query = late_rows(31, batches=8, rows=90), QUERIES[name]
    write_batches(tmp_path / "in", batches)
    late = {} if amend else {"late": tmp_path / "late"}
    seen = finish(job_of(session, tmp_path, query, batches[0].schema, early="5 seconds", **late))
    plan = early_plan(query, amend=amend)
    assert_as_defined(tmp_path, plan, batches)
    for metrics, outcome in zip(seen, local.run(plan, batches), strict=True):
        assert metrics.early_windows == sum(answer.early for answer in outcome.answers)
        amended = 0 if outcome.amended is None else outcome.amended.windows
        assert metrics.windows == sum(not answer.early for answer in outcome.answers) - amended
    assert "answered early" in str(seen[0])
    assert current(tmp_path) == ended(expected(plan, batches))


@pytest.mark.parametrize("name", ["skyline", "aggregate that loses its rows"])
def test_workers_answer_early_as_the_driver(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
    batches, query = late_rows(32, batches=8, rows=90), QUERIES[name]
    write_batches(tmp_path / "in", batches)
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=3)
    seen = finish(job_of(session, tmp_path, query, batches[0].schema, workers=workers, early="5 seconds"))
    assert {metrics.wlq_where for metrics in seen} & {"spark", "threads"}
    assert_as_defined(tmp_path, early_plan(query), batches)


@pytest.mark.parametrize("where", ["driver", "workers"])
def test_changes_add_up_to_the_early_answers(
    where: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The partials of the last early answers are kept over a restart, since their rows are removed later."""
    if where == "workers":
        monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
    batches, query = late_rows(37, batches=8, rows=90), QUERIES["aggregate that loses its rows"]
    late = sp.Amend("12 seconds", changes=True)
    for first, some in ((0, batches[:5]), (5, batches[5:])):
        write_batches(tmp_path / "in", some, first=first)
        options = {"late": late, "early": "5 seconds", "workers": sp.WorkerOptions(wlq_workers=3)}
        finish(job_of(session, tmp_path, query, batches[0].schema, **options))
    table = parquet_rows(tmp_path / "out")
    assert {("DEL", True), ("ADD", True), ("ADD", False)} <= set(
        zip(table["action"].to_pylist(), table["early"].to_pylist(), strict=True)
    )
    assert current(tmp_path) == ended(expected(early_plan(query), batches))


def test_windows_are_answered_early_over_drains_and_restarts(session: Session, tmp_path: Path):
    batches, query = late_rows(33, batches=9, rows=90), QUERIES["skyline"]
    events: list[local.Event] = []
    for number in range(3):
        some = batches[3 * number : 3 * number + 3]
        write_batches(tmp_path / "in", some, first=3 * number)
        handle = job_of(session, tmp_path, query, batches[0].schema, early="5 seconds").start(trigger="available now")
        assert handle.await_termination(600)
        events += some
        if number != 1:  # the second start ends with open windows
            assert handle.drain() is not None
            events.append(local.Drain())
    assert_as_defined(tmp_path, early_plan(query), events)
    assert current(tmp_path) == {start: rows for start, (_, rows) in last(expected(early_plan(query), events)).items()}


def test_a_stream_that_is_replayed_gives_the_same_versions(session: Session, tmp_path: Path):
    """The span is one of event time: pauses and restarts change nothing."""
    batches, query = late_rows(34, batches=8, rows=90), QUERIES["top-k"]
    for folder, starts in ((tmp_path / "once", [0]), (tmp_path / "often", [0, 1, 3])):
        for first, end in pairwise([*starts, len(batches)]):
            write_batches(folder / "in", batches[first:end], first=first)
            finish(job_of(session, folder, query, batches[0].schema, early="5 seconds"))
    assert versions_of(parquet_rows(tmp_path / "once/out")) == versions_of(parquet_rows(tmp_path / "often/out"))


def test_early_may_be_added_and_changed_and_is_removed_after_a_drain(session: Session, tmp_path: Path):
    """Until then a job without it would leave the early answers as the last ones."""
    batches, query = late_rows(35, batches=6, rows=90), QUERIES["skyline"]
    schema, plain = batches[0].schema, {"late": tmp_path / "late"}
    write_batches(tmp_path / "in", batches[:2])
    finish(job_of(session, tmp_path, query, schema, **plain))
    write_batches(tmp_path / "in", batches[2:4], first=2)
    finish(job_of(session, tmp_path, query, schema, early="5 seconds", **plain))
    with pytest.raises(sp.CheckpointError, match=r"early answers of \d+ open windows, which a job without"):
        job_of(session, tmp_path, query, schema, **plain).start()
    handle = job_of(session, tmp_path, query, schema, early="9 seconds", **plain).start(trigger="available now")
    assert handle.await_termination(600)
    assert handle.drain() is not None
    write_batches(tmp_path / "in", batches[4:], first=4)
    finish(job_of(session, tmp_path, query, schema, **plain))
    found = current(tmp_path)
    whole = replace(early_plan(query, amend=False), early=None)
    events = [*batches[:4], local.Drain(), *batches[4:]]
    answers = pa.concat_tables(answer.rows for answer in local.answers(whole, events))
    wanted: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in answers.to_pylist():
        wanted[row.pop("window_start")][repr(row)] += 1
    assert found == dict(wanted)


def test_each_of_several_queries_answers_early_as_alone(session: Session, tmp_path: Path):
    batches = late_rows(31, batches=8, rows=90)
    write_batches(tmp_path / "in", batches)
    windows = {"best": WINDOWS, "load": Windows(40 * SECOND, 10 * SECOND)}
    asked = {"best": QUERIES["skyline"], "load": QUERIES["aggregate"]}
    job = sp.streams(
        read_batches(session, tmp_path / "in", batches[0].schema),
        asked,
        time="ts",
        window=windows,
        progress=POLICY,
        late=sp.Amend("12 seconds"),
        early="5 seconds",
        checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "out",
    )
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
        write_batches(tmp_path / "in", batches[first : first + 4], first=first)
        finish(job_of(session, tmp_path, query, batches[0].schema, early="5 seconds", late=tmp_path / "late"))
    files = [pa.parquet.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    written = pa.concat_tables(files, promote_options="default")
    assert versions_of(written.drop_columns("best")) == expected(early_plan(counting, amend=False), batches)
    known = written.filter(pc.is_valid(written["best"]))
    assert set(known["early"].to_pylist()) == {True, False}


def test_a_query_does_not_change_while_its_early_answers_are_to_be_removed(session: Session, tmp_path: Path):
    """The rows of the earlier query's answers could not be computed again, as changes need them."""
    batches = late_rows(36, batches=3, rows=90)
    write_batches(tmp_path / "in", batches)
    options = {"late": sp.Amend("12 seconds", changes=True), "early": "5 seconds"}

    def job(having: str | None = None) -> sp.Job:
        query = sp.Aggregate("sensor", n=sp.count(), having=having)
        return job_of(session, tmp_path, query, batches[0].schema, **options)

    finish(job())
    (reason,) = job(having="n > 3").changes().refused
    assert "open windows have early answers as changes" in reason
    with pytest.raises(sp.CheckpointError, match=r"query.having was None"):
        job(having="n > 3").start()
    handle = job().start(trigger="available now")
    assert handle.await_termination(600)
    handle.drain()
    assert job(having="n > 3").changes().refused == ()


@pytest.mark.parametrize(
    ("early", "problem"), [("0 seconds", "early must be longer than 0, got '0 seconds'"), (3, "unit")]
)
def test_a_span_that_makes_no_sense_is_refused(early: Any, problem: str, session: Session, tmp_path: Path):
    (tmp_path / "in").mkdir()
    with pytest.raises(sp.ConfigError, match=problem):
        job_of(session, tmp_path, QUERIES["skyline"], late_rows(1, batches=1)[0].schema, early=early)


def test_a_job_shows_that_it_answers_early(session: Session, tmp_path: Path):
    (tmp_path / "in").mkdir()
    schema = late_rows(1, batches=1)[0].schema
    assert "early answers: every 5 seconds of ts" in repr(
        job_of(session, tmp_path, QUERIES["skyline"], schema, early="5 seconds")
    )
    named = pa.schema([field.with_name("Early") if field.name == "weight" else field for field in schema])
    with pytest.raises(sp.ConfigError, match="version, early and empty: rename Early"):
        job_of(session, tmp_path, QUERIES["skyline"], named, early="5 seconds")
    job_of(session, tmp_path, QUERIES["skyline"], named)
