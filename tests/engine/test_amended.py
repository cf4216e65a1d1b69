"""Spark's amended answers against runtime/local.py, which defines them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine import jobs
from tests.engine.reading import current
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import (
    SECOND,
    AnySession,
    CountBySensor,
    ended,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    write_batches,
)

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import kept_panes
from skypane.testing import Session
from skypane.windows import Windows

PARETO = sp.low("price") * sp.high("rating")
WINDOWS = Windows(50 * SECOND, 20 * SECOND)
POLICY = sp.Watermark("1 second")
Versions = dict[Any, list[tuple[bool, Counter[str]]]]
"""By the start of each window: whether a version is early, and its rows."""

QUERIES: dict[str, Query] = {
    "skyline": sp.Skyline(PARETO, "sensor"),
    "top-k": sp.TopK(3, "rating - price"),
    "k-dominant": sp.KDominant(2, PARETO * sp.low("weight")),
    "aggregate": sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight"), best=sp.max("rating")),
    "aggregate that loses its rows": sp.Aggregate("sensor", n=sp.count(), having="n < 12"),
    "of a user": CountBySensor(),
}


def plan_of(query: Query, within: int = 12, windows: Windows = WINDOWS) -> Plan:
    return Plan(query, windows, "ts", POLICY, amend=AmendRule(within * SECOND))


def job_of(session: AnySession, folder: Path, query: Query, schema: pa.Schema = SCHEMA, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"window": WINDOWS, "progress": POLICY, "late": sp.Amend("12 seconds", then=folder / "late")}
    return jobs.job_of(session, folder, query, schema, **own | options)


def with_weight_as(name: str) -> pa.Schema:
    """Return the schema of rows in which another name stands for the weight."""
    return pa.schema([field.with_name(name) if field.name == "weight" else field for field in SCHEMA])


def run(
    session: Session, folder: Path, query: Query, batches: Sequence[pa.Table], first: int = 0, **options: Any
) -> list[sp.BatchMetrics]:
    """Write batches, and run the job over them."""
    write_batches(folder / "in", batches, first=first)
    return finish(job_of(session, folder, query, batches[0].schema, **options))


def versions_of(answers: pa.Table) -> Versions:
    """Return the versions of each window; they are whole and consecutive."""
    found: dict[Any, dict[int, tuple[bool, Counter[str]]]] = defaultdict(dict)
    for row in answers.to_pylist():
        early, empty = row.pop("early", False), row.pop("empty")
        known, rows = found[row.pop("window_start")].setdefault(row.pop("version"), (early, Counter()))
        assert known == early
        if empty:
            row.pop("window_end")
            assert set(row.values()) == {None}
            assert not rows
        else:
            rows[repr(row)] += 1
    for versions in found.values():
        assert sorted(versions) == list(range(len(versions)))
    return {start: [versions[number] for number in sorted(versions)] for start, versions in found.items()}


def expected(plan: Plan, events: Sequence[local.Event]) -> Versions:
    """Return the versions of each window by the definition."""
    found: Versions = defaultdict(list)
    some = next(event for event in events if isinstance(event, pa.Table)).slice(0, 1)
    stamp = plan.window_query(some.schema).stamp
    for answer in local.answers(plan, events):
        (start,) = stamp(answer.window, some)["window_start"].to_pylist()
        assert answer.version == len(found[start])
        own = [name for name in answer.rows.column_names if name not in {"window_start", "version", "early", "empty"}]
        found[start].append((answer.early, Counter(map(repr, answer.rows.select(own).to_pylist()))))
    return dict(found)


def last(versions: Versions) -> dict[Any, Counter[str]]:
    """Return the rows of the last version of each window that has ended, if it has rows."""
    newest = {start: each[-1] for start, each in versions.items()}
    return {start: rows for start, (early, rows) in newest.items() if rows and not early}


def assert_as_defined(folder: Path, plan: Plan, events: Sequence[local.Event], *, late: bool = True) -> None:
    """Output, late rows, counts and files are those of the definition, and windows were amended."""
    wanted = expected(plan, events)
    assert any(len(versions) > 1 for versions in wanted.values())
    assert versions_of(parquet_rows(folder / "out")) == wanted
    tables = [table for outcome in local.run(plan, events) for table in outcome.rejection.rows]
    rejected = [row for table in tables for row in table["id"].to_pylist()]
    assert bool(rejected) is late, "whether some rows are too late to amend"
    if late:
        assert sorted(parquet_rows(folder / "late")["id"].to_pylist()) == sorted(rejected)
    assert_counted_and_kept(folder, plan, events)


def assert_counted_and_kept(folder: Path, plan: Plan, events: Sequence[local.Event]) -> None:
    """The totals are those of the definition, and the files of partials those that are needed."""
    *_, outcome = local.run(plan, events)
    assert sp.BatchMetrics.from_json(jobs.ledger_of(folder).history(1)[0]).totals == outcome.totals.to_json()
    assert jobs.partials(folder) == jobs.named_partials(folder)


def assert_counted(seen: Sequence[sp.BatchMetrics], plan: Plan, events: Sequence[local.Event]) -> None:
    """The metrics count what the definition counts; the bytes are those of files."""
    for metrics, outcome in zip(seen, local.run(plan, events), strict=True):
        counts, amended = outcome.amended, metrics.amended
        assert amended is not None
        assert counts is not None
        assert (amended["rows"], amended["windows"]) == (counts.rows, counts.windows)
        assert (amended["all_answered"], amended["all_amended"]) == (counts.all_answered, counts.all_amended)
        assert (amended["panes"], amended["discarded"]) == (counts.panes, counts.discarded)
        assert (amended["bytes"] > 0) is (counts.panes > 0)
        in_the_past = counts.windows - sum(answer.version > 0 for answer in outcome.answers)
        # Windows that had no row when they were passed have got their first answer.
        assert metrics.windows == sum(not answer.version for answer in outcome.answers) - in_the_past


@pytest.mark.core
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_amends_as_the_oracle(name: str, session: Session, tmp_path: Path):
    batches, query = late_rows(31, batches=8, rows=90), QUERIES[name]
    seen = run(session, tmp_path, query, batches)
    assert_as_defined(tmp_path, plan_of(query), batches)
    assert_counted(seen, plan_of(query), batches)
    assert "window amended" in str(seen[-1])
    assert current(tmp_path) == last(expected(plan_of(query), batches))


def test_a_budget_of_amended_windows_decides_as_the_oracle_over_a_restart(session: Session, tmp_path: Path):
    batches, query = late_rows(38, batches=24, rows=60), QUERIES["skyline"]
    policy, windows = sp.AqKSlack(max_amended=0.3, reserve=1), Windows(20 * SECOND, 2 * SECOND)
    plan = Plan(query, windows, "ts", policy, amend=AmendRule(600 * SECOND))
    own: dict[str, Any] = {
        "window": windows,
        "progress": policy,
        "late": sp.Amend("10 minutes", then=tmp_path / "late"),
    }
    seen = run(session, tmp_path, query, batches[:12], **own)
    seen += run(session, tmp_path, query, batches[12:], first=12, **own)
    assert_as_defined(tmp_path, plan, batches, late=False)
    assert_counted(seen, plan, batches)
    assert seen[-1].amend_budget == 0.3
    assert seen[-1].amended_share is not None
    assert 0 < seen[-1].amended_share <= 0.35
    decision = seen[-1].decision("progress")
    assert decision is not None
    assert "may be amended" in decision.because


def test_a_budget_of_amended_windows_needs_late_amend(session: Session, tmp_path: Path):
    with pytest.raises(sp.ConfigError, match=r"AqKSlack\(max_amended=0.05\) .* needs late=Amend\(...\), or max_drop"):
        job_of(session, tmp_path, QUERIES["top-k"], SCHEMA, progress=sp.AqKSlack(max_amended=0.05), late=None)


@pytest.mark.parametrize("name", ["skyline", "aggregate that loses its rows"])
def test_workers_amend_as_the_driver(name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    jobs.answer_on_workers(monkeypatch)
    batches, query = late_rows(32, batches=8, rows=90), QUERIES[name]
    seen = run(session, tmp_path, query, batches, workers=sp.WorkerOptions(plq_workers=2, wlq_workers=3))
    assert {metrics.wlq_where for metrics in seen} & {"spark", "threads"}
    assert_as_defined(tmp_path, plan_of(query), batches)


@pytest.mark.parametrize("where", ["driver", "workers"])
def test_changes_add_up_to_the_answers(where: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Workers share the keys of an aggregate where there is one window."""
    if where == "workers":
        jobs.answer_on_workers(monkeypatch)
    batches, query = late_rows(37, batches=8, rows=90), QUERIES["aggregate that loses its rows"]
    late, workers = sp.Amend("12 seconds", changes=True), sp.WorkerOptions(wlq_workers=3)
    run(session, tmp_path, query, batches, late=late, workers=workers)
    assert {"ADD", "DEL"} == set(parquet_rows(tmp_path / "out")["action"].to_pylist())
    assert current(tmp_path) == last(expected(plan_of(query), batches))


def test_rows_amend_over_a_drain_and_a_restart(session: Session, tmp_path: Path):
    """The drain answers all windows; rows that come later amend them, in the next start."""
    batches, query = late_rows(33, batches=8, rows=90), QUERIES["skyline"]
    events: list[local.Event] = []
    for first in (0, 3, 6):
        write_batches(tmp_path / "in", batches[first : first + 3], first=first)
        assert ended(job_of(session, tmp_path, query, SCHEMA)).drain() is not None
        events += [*batches[first : first + 3], local.Drain()]
    assert_as_defined(tmp_path, plan_of(query), events)


def test_small_files_of_kept_panes_are_copied_into_one(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_panes, "MANY_FILES", 3)
    batches, query = late_rows(34, batches=8, rows=90), QUERIES["skyline"]
    run(session, tmp_path, query, batches, late=sp.Amend("1 day", then=tmp_path / "late"))
    assert_as_defined(tmp_path, plan_of(query, 86_400), batches, late=False)
    ledger = DocumentStore.at(str(tmp_path / "checkpoint" / "skypane" / "ledger"))
    states = [ledger.read_json(name)["operator"] for name in sorted(ledger.names())]
    copied = 0
    for state in states:
        still, kept = (
            {ref[0] for ref in chain(*panes.values())} for panes in (state["panes"], state["closed"]["panes"])
        )
        assert len(kept - still) <= 3, "two files that are not copied yet, and the last copy"
        copied += any(f"-{kept_panes.COPIED}-" in file for file in kept)
    assert copied


def test_windows_that_were_answered_before_the_job_could_amend_are_final(session: Session, tmp_path: Path):
    batches, query = late_rows(35, batches=8, rows=90), QUERIES["skyline"]
    run(session, tmp_path, query, batches[:3], late=tmp_path / "late")
    first = max(parquet_rows(tmp_path / "out")["window_end"].to_pylist())
    seen = run(session, tmp_path, query, batches[3:], first=3)
    assert any(metrics.amended and metrics.amended["windows"] for metrics in seen)
    out = tmp_path / "out"
    later = pa.concat_tables(
        pq.read_table(path) for path in sorted(out.glob("*.parquet")) if path.name >= "part-000000000003"
    )
    assert min(later["window_end"].to_pylist()) > first, "a window without its panes cannot be amended"
    finish(job_of(session, tmp_path, query, SCHEMA, late=tmp_path / "late"))
    totals = seen[-1].totals
    assert totals["read"] == sum(totals[name] for name in ("answered", "late", "quarantined", "held", "open"))
    newest = current(tmp_path)
    starts = {start for path in out.glob("*.parquet") for start in pq.read_table(path)["window_start"].to_pylist()}
    assert starts == newest.keys(), "files of both kinds are read"
    versions = versions_of(later)
    assert {start: newest[start] for start in versions} == last(versions)


def test_a_bound_on_bytes_discards_the_oldest_panes(session: Session, tmp_path: Path):
    batches, query = late_rows(36, batches=8, rows=90), QUERIES["skyline"]
    seen = run(session, tmp_path, query, batches, late=sp.Amend("1 day", max_bytes=3_000))
    counts = [metrics.amended for metrics in seen if metrics.amended is not None]
    assert len(counts) == len(batches)
    assert max(count["bytes"] for count in counts) <= 3_000
    assert sum(count["discarded"] for count in counts) > 0
    assert seen[-1].totals["late"] > 0
    versions_of(parquet_rows(tmp_path / "out"))


def test_changes_are_not_mixed_with_whole_versions(session: Session, tmp_path: Path):
    run(session, tmp_path, QUERIES["skyline"], late_rows(38, batches=1), late=sp.Amend("1 day"))
    changing = job_of(session, tmp_path, QUERIES["skyline"], SCHEMA, late=sp.Amend("1 day", changes=True))
    with pytest.raises(sp.CheckpointError, match="answers was None, is 'changes'"):
        changing.start()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"within": "0 seconds"}, r"Amend\(within\) must be longer than 0, got '0 seconds'"),
        ({"within": 3}, "unit"),
        ({"within": "1 day", "max_bytes": 0}, r"Amend\(max_bytes\) must be a whole number of bytes"),
        ({"within": "1 day", "then": sp.Amend("1 day")}, r"Amend\(then\) must be a sink"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], problem: str):
    with pytest.raises(sp.ConfigError, match=problem):
        sp.Amend(**arguments)


def test_columns_that_the_answers_add_may_not_be_there(session: Session, tmp_path: Path):
    schema = with_weight_as("Version")
    with pytest.raises(sp.ConfigError, match="window_start, window_end, version and empty: rename Version"):
        job_of(session, tmp_path, QUERIES["skyline"], schema)
    job_of(session, tmp_path, QUERIES["skyline"], schema, late=None)


def test_a_continuous_skyline_refuses_to_amend(session: Session, tmp_path: Path):
    rows = read_batches(session, tmp_path, SCHEMA)
    own: dict[str, Any] = {"time": "ts", "window": "1 minute", "checkpoint": "c", "output": sp.Console()}
    with pytest.raises(sp.ConfigError, match="not for a continuous skyline"):
        sp.continuous_skyline(rows, PARETO, late=sp.Amend("1 day"), **own)  # type: ignore[arg-type]


def test_a_job_shows_that_it_amends(session: Session, tmp_path: Path):
    job = job_of(session, tmp_path, QUERIES["skyline"], SCHEMA, late=sp.Amend("1 day"))
    assert "late rows: amend answers for 1 day, then counted" in repr(job)
    assert replace(plan_of(QUERIES["skyline"]), amend=None).describe() == plan_of(QUERIES["skyline"]).describe()
