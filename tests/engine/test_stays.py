"""Spark's stays against runtime/local.py: expanded, they are the answers of the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engine import jobs
from tests.engine.jobs import drain_without_commit
from tests.engine.reading import read_answers
from tests.engine.test_amended import QUERIES
from tests.engine.test_query_changes import killed
from tests.runtime.decisions.test_window_division import IN_THREADS, ON_SPARK, AnyDivision
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import SECOND, AnySession, answers, ended, finish, late_rows, parquet_rows, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.operators.query import Query
from skypane.operators.stay_columns import expanded
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.engine import window_program
from skypane.testing import Session
from skypane.windows import Windows

WINDOWS = Windows(40 * SECOND, 5 * SECOND)
IN_DRIVER = Costs(job=1e3, threads=1e3)


def job_of(
    session: AnySession, folder: Path, query: Query = QUERIES["skyline"], *, costs: Costs = IN_DRIVER, **options: Any
) -> sp.Job:
    own: dict[str, Any] = {"window": WINDOWS, "answers": "stays", "workers": sp.WorkerOptions(wlq_workers=3)}
    job = jobs.job_of(session, folder, query, SCHEMA, **own | options)
    return replace(job, settings=replace(job.settings, costs=costs))


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def assert_read(folder: Path, job: sp.Job, events: Sequence[local.Event]) -> None:
    """A reader gets the answers of the windows."""
    wanted = answers(plan_of(job), events)
    assert bag(read_answers(folder / "out").select(wanted.column_names)) == bag(wanted)


def plan_of(job: sp.Job) -> Plan:
    assert isinstance(job.settings.plan, Plan)
    return job.settings.plan


@pytest.mark.core
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_writes_the_stays_of_its_answers(name: str, session: Session, tmp_path: Path):
    batches = late_rows(41, batches=6, rows=60)
    write_batches(tmp_path / "in", batches)
    job = job_of(session, tmp_path, QUERIES[name])
    seen = finish(job)
    written, wanted = parquet_rows(tmp_path / "out"), answers(plan_of(job), batches)
    assert bag(expanded(written)) == bag(wanted.select(expanded(written).column_names))
    assert_read(tmp_path, job, batches)
    outcomes = [*local.run(plan_of(job), batches)]
    assert [(m.windows, m.window_rows) for m in seen] == [
        (len(one.answers), sum(answer.rows.num_rows for answer in one.answers)) for one in outcomes
    ]
    assert bag(written) == sum((bag(table) for one in outcomes for table in one.stays), Counter())


@pytest.mark.parametrize("name", ["skyline", "top-k", "aggregate"])
def test_windows_may_be_divided_otherwise_in_every_batch_and_over_a_restart(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    batches = late_rows(17, batches=6, rows=60)
    monkeypatch.setattr(window_program, "WindowDivision", AnyDivision)
    seen: list[sp.BatchMetrics] = []
    for first, costs in ((0, ON_SPARK), (3, IN_THREADS)):
        write_batches(tmp_path / "in", batches[first : first + 3], first=first)
        job = job_of(session, tmp_path, QUERIES[name], costs=costs)
        seen += finish(job)
    assert "spark" in {metrics.wlq_where for metrics in seen}
    wanted = answers(plan_of(job), batches)
    assert bag(expanded(parquet_rows(tmp_path / "out")).select(wanted.column_names)) == bag(wanted)


def test_the_form_may_change_between_two_starts(session: Session, tmp_path: Path):
    batches = late_rows(23, batches=6, rows=40)
    for first, form in ((0, "windows"), (2, "stays"), (4, "windows")):
        write_batches(tmp_path / "in", batches[first : first + 2], first=first)
        job = job_of(session, tmp_path, answers=form)
        assert not job.changes().refused
        finish(job)
    assert_read(tmp_path, job, batches)


@pytest.mark.parametrize(("first", "second"), [("windows", "stays"), ("stays", "windows")])
def test_the_form_may_change_after_a_kill(
    first: str, second: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A batch is delivered in one form and not committed; the next start delivers it in the other, and so a drain."""
    batches = late_rows(23, batches=6, rows=40)
    write_batches(tmp_path / "in", batches[:3])
    finish(job_of(session, tmp_path, answers=first))
    write_batches(tmp_path / "in", batches[3:], first=3)
    killed("before the commit", job_of(session, tmp_path, answers=first), monkeypatch)
    job = job_of(session, tmp_path, answers=second)
    finish(job)
    assert_read(tmp_path, job, batches)
    drain_without_commit(ended(job), monkeypatch)
    finish(job_of(session, tmp_path, answers=first))  # finishes the drain
    assert_read(tmp_path, job, [*batches, local.Drain()])


def test_several_queries_write_stays(session: Session, tmp_path: Path):
    batches = late_rows(29, batches=5, rows=40)
    write_batches(tmp_path / "in", batches)
    asked = {"best": QUERIES["skyline"], "load": QUERIES["aggregate"]}
    finish(jobs.job_of(session, tmp_path, asked, SCHEMA, window=WINDOWS, answers="stays"))
    for name, query in asked.items():
        wanted = answers(Plan(query, WINDOWS, "ts", sp.Watermark("20 seconds")), batches)
        found = expanded(parquet_rows(tmp_path / "out" / name))
        assert bag(found.select(wanted.column_names)) == bag(wanted)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"late": sp.Amend("1 day")}, "Amend"),
        ({"early": "10 seconds"}, "early"),
        ({"output": sp.Directory("out", "csv")}, "got format 'csv'"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    options: dict[str, Any], named: str, session: Session, tmp_path: Path
):
    with pytest.raises(sp.ConfigError, match=f'answers="stays".*{named}'):
        job_of(session, tmp_path, **{"output": sp.Memory()} | options)
