"""Spark's amended answers against runtime/local.py, which defines them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.reading import current
from tests.runtime.streams import (
    SECOND,
    AnySession,
    CountBySensor,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    write_batches,
)

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.placement import place_windows
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.reporting import snapshot
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import kept_panes, window_program
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.testing import Session
from skypane.types import ConfigError
from skypane.windows import Windows

PARETO = sp.low("price") * sp.high("rating")
WINDOWS = Windows(50 * SECOND, 20 * SECOND)
POLICY = sp.Watermark("1 second")
Versions = dict[Any, list[Counter[str]]]

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


def job_of(session: AnySession, folder: Path, query: Query, schema: pa.Schema, **options: Any) -> sp.Job:
    own: dict[str, Any] = {
        "time": "ts",
        "window": WINDOWS,
        "progress": POLICY,
        "late": sp.Amend("12 seconds", then=folder / "late"),
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
    }
    return sp.stream(read_batches(session, folder / "in", schema), query, **own | options)


def versions_of(answers: pa.Table) -> Versions:
    """Return the versions of each window, each a multiset of rows; they are whole, in order and consecutive."""
    found: dict[Any, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in answers.to_pylist():
        rows = found[row.pop("window_start")][row.pop("version")]
        if row.pop("empty"):
            row.pop("window_end")
            assert set(row.values()) == {None}
            assert not rows
        else:
            rows.append(row)
    for versions in found.values():
        assert sorted(versions) == list(range(len(versions)))
    return {
        start: [Counter(map(repr, versions[number])) for number in sorted(versions)]
        for start, versions in found.items()
    }


def expected(plan: Plan, events: Sequence[local.Event]) -> Versions:
    """Return the versions of each window by the definition."""
    found: Versions = defaultdict(list)
    tables = [event for event in events if isinstance(event, pa.Table)]
    stamp = plan.window_query(tables[0].schema).stamp
    for answer in local.answers(plan, events):
        start = stamp(answer.window, tables[0].slice(0, 1))["window_start"].to_pylist()[0]
        rows = answer.rows.drop_columns(["window_start", "version", "empty"]).to_pylist()
        assert answer.version == len(found[start])
        found[start].append(Counter(map(repr, rows)))
    return dict(found)


def assert_as_defined(folder: Path, plan: Plan, events: Sequence[local.Event], *, late: bool = True) -> None:
    """Output, late rows, counts and files are those of the definition, and windows were amended."""
    wanted, outcomes = expected(plan, events), list(local.run(plan, events))
    assert any(len(versions) > 1 for versions in wanted.values())
    assert versions_of(parquet_rows(folder / "out")) == wanted
    rejected = [row for outcome in outcomes for rows in outcome.rejection.rows for row in rows["id"].to_pylist()]
    assert bool(rejected) is late, "whether some rows are too late to amend"
    if late:
        assert sorted(parquet_rows(folder / "late")["id"].to_pylist()) == sorted(rejected)
    ledger = Ledger(DocumentStore.at(str(folder / "checkpoint" / "skypane")))
    last, manifest = sp.BatchMetrics.from_json(ledger.history(1)[0]), ledger.latest()
    assert last.totals == outcomes[-1].totals.to_json()
    assert manifest is not None
    closed = manifest.operator["closed"]
    refs = [ref for panes in (manifest.operator["panes"], closed["panes"]) for ref in chain(*panes.values())]
    assert {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()} == {
        ref[0] for ref in refs
    }


def last(versions: Versions) -> dict[Any, Counter[str]]:
    """Return the last version of each window that has rows in it."""
    return {start: each[-1] for start, each in versions.items() if each[-1]}


def assert_counted(seen: Sequence[sp.BatchMetrics], plan: Plan, events: Sequence[local.Event]) -> None:
    """The metrics count what the definition counts; the bytes are those of files."""
    for metrics, outcome in zip(seen, local.run(plan, events), strict=True):
        counts = outcome.amended
        assert metrics.amended is not None
        assert counts is not None
        assert (metrics.amended["rows"], metrics.amended["windows"]) == (counts.rows, counts.windows)
        assert (metrics.amended["all_answered"], metrics.amended["all_amended"]) == (
            counts.all_answered,
            counts.all_amended,
        )
        assert (metrics.amended["panes"], metrics.amended["discarded"]) == (counts.panes, counts.discarded)
        assert (metrics.amended["bytes"] > 0) is (counts.panes > 0)
        assert metrics.windows == sum(not answer.version for answer in outcome.answers) - _first_in_the_past(outcome)


def parquet_rows_of(folder: Path) -> list[dict[str, Any]]:
    tables = [pa.parquet.read_table(path, columns=["window_start"]) for path in (folder / "out").glob("*.parquet")]
    return [row for table in tables for row in table.to_pylist()]


def _first_in_the_past(outcome: local.StepOutcome) -> int:
    """Return how many windows that had no row when they were passed have got their first answer."""
    assert outcome.amended is not None
    return outcome.amended.windows - sum(answer.version > 0 for answer in outcome.answers)


@pytest.mark.core
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_amends_as_the_oracle(name: str, session: Session, tmp_path: Path):
    batches, query = late_rows(31, batches=8, rows=90), QUERIES[name]
    write_batches(tmp_path / "in", batches)
    seen = finish(job_of(session, tmp_path, query, batches[0].schema))
    assert_as_defined(tmp_path, plan_of(query), batches)
    assert_counted(seen, plan_of(query), batches)
    assert "window amended" in str(seen[-1])
    assert current(tmp_path) == last(expected(plan_of(query), batches))


def test_a_budget_of_amended_windows_decides_as_the_oracle_over_a_restart(session: Session, tmp_path: Path):
    batches, query = late_rows(38, batches=24, rows=60), QUERIES["skyline"]
    policy = sp.AqKSlack(max_amended=0.3, reserve=1)
    windows = Windows(20 * SECOND, 2 * SECOND)
    plan = Plan(query, windows, "ts", policy, amend=AmendRule(600 * SECOND))
    seen: list[sp.BatchMetrics] = []
    for first, last in ((0, 12), (12, 24)):
        write_batches(tmp_path / "in", batches[first:last], first=first)
        late = sp.Amend("10 minutes", then=tmp_path / "late")
        own: dict[str, Any] = {"window": windows, "progress": policy, "late": late}
        seen += finish(job_of(session, tmp_path, query, batches[0].schema, **own))
    assert_as_defined(tmp_path, plan, batches, late=False)
    assert_counted(seen, plan, batches)
    assert seen[-1].amend_budget == 0.3
    assert seen[-1].amended_share is not None
    assert 0 < seen[-1].amended_share <= 0.35
    decision = seen[-1].decision("progress")
    assert decision is not None
    assert "may be amended" in decision.because


def test_a_budget_of_amended_windows_needs_late_amend(session: Session, tmp_path: Path):
    schema = late_rows(38, batches=1)[0].schema
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigError, match=r"AqKSlack\(max_amended=0.05\) .* needs late=Amend\(...\), or max_drop"):
        job_of(session, tmp_path, QUERIES["top-k"], schema, progress=sp.AqKSlack(max_amended=0.05), late=None)


@pytest.mark.parametrize("name", ["skyline", "aggregate that loses its rows"])
def test_workers_amend_as_the_driver(name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
    batches, query = late_rows(32, batches=8, rows=90), QUERIES[name]
    write_batches(tmp_path / "in", batches)
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=3)
    seen = finish(job_of(session, tmp_path, query, batches[0].schema, workers=workers))
    assert {metrics.wlq_where for metrics in seen} & {"spark", "threads"}
    assert_as_defined(tmp_path, plan_of(query), batches)


@pytest.mark.parametrize("where", ["driver", "workers"])
def test_changes_add_up_to_the_answers(where: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Workers share the keys of an aggregate where there is one window."""
    if where == "workers":
        monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
    batches, query = late_rows(37, batches=8, rows=90), QUERIES["aggregate that loses its rows"]
    write_batches(tmp_path / "in", batches)
    late = sp.Amend("12 seconds", changes=True)
    finish(job_of(session, tmp_path, query, batches[0].schema, late=late, workers=sp.WorkerOptions(wlq_workers=3)))
    table = parquet_rows(tmp_path / "out")
    assert {"ADD", "DEL"} == set(table["action"].to_pylist())
    wanted = last(expected(plan_of(query), batches))
    assert current(tmp_path) == wanted
    reported = snapshot.answers(tmp_path / "out")
    assert reported is not None
    assert Counter(reported["window_start"].to_pylist()) == {start: rows.total() for start, rows in wanted.items()}


def test_rows_amend_over_a_drain_and_a_restart(session: Session, tmp_path: Path):
    """The drain answers all windows; rows that come later amend them, in the next start."""
    batches, query = late_rows(33, batches=8, rows=90), QUERIES["skyline"]
    events: list[local.Event] = []
    for number, some in enumerate([batches[:3], batches[3:6], batches[6:]]):
        write_batches(tmp_path / "in", some, first=3 * number)
        handle = job_of(session, tmp_path, query, batches[0].schema).start(trigger="available now")
        assert handle.await_termination(600)
        assert handle.drain() is not None
        events += [*some, local.Drain()]
    assert_as_defined(tmp_path, plan_of(query), events)


def test_small_files_of_kept_panes_are_copied_into_one(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_panes, "MANY_FILES", 3)
    batches, query = late_rows(34, batches=8, rows=90), QUERIES["skyline"]
    write_batches(tmp_path / "in", batches)
    finish(job_of(session, tmp_path, query, batches[0].schema, late=sp.Amend("1 day", then=tmp_path / "late")))
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
    write_batches(tmp_path / "in", batches[:3])
    finish(job_of(session, tmp_path, query, batches[0].schema, late=tmp_path / "late"))
    first = [row["window_end"] for row in parquet_rows(tmp_path / "out").to_pylist()]
    write_batches(tmp_path / "in", batches[3:], first=3)
    seen = finish(job_of(session, tmp_path, query, batches[0].schema))
    assert any(metrics.amended and metrics.amended["windows"] for metrics in seen)
    later = [path for path in sorted((tmp_path / "out").glob("*.parquet")) if path.name >= "part-000000000003"]
    ends = [end for path in later for end in pa.parquet.read_table(path)["window_end"].to_pylist()]
    assert min(ends) > max(first), "a window without its panes cannot be amended"
    finish(job_of(session, tmp_path, query, batches[0].schema, late=tmp_path / "late"))
    totals = seen[-1].totals
    assert totals["read"] == sum(totals[name] for name in ("answered", "late", "quarantined", "held", "open"))
    newest = current(tmp_path)
    assert {row["window_start"] for row in parquet_rows_of(tmp_path)} == newest.keys(), "files of both kinds are read"
    versions = versions_of(pa.concat_tables(pa.parquet.read_table(path) for path in later))
    assert {start: newest[start] for start in versions} == last(versions)


def test_a_bound_on_bytes_discards_the_oldest_panes(session: Session, tmp_path: Path):
    batches, query = late_rows(36, batches=8, rows=90), QUERIES["skyline"]
    write_batches(tmp_path / "in", batches)
    late = sp.Amend("1 day", max_bytes=3_000)
    seen = finish(job_of(session, tmp_path, query, batches[0].schema, late=late))
    counts = [metrics.amended for metrics in seen if metrics.amended is not None]
    assert len(counts) == len(batches)
    assert max(count["bytes"] for count in counts) <= 3_000
    assert sum(count["discarded"] for count in counts) > 0
    assert seen[-1].totals["late"] > 0
    versions_of(parquet_rows(tmp_path / "out"))


def test_changes_are_not_mixed_with_whole_versions(session: Session, tmp_path: Path):
    batches = late_rows(38, batches=1)
    write_batches(tmp_path / "in", batches)
    finish(job_of(session, tmp_path, QUERIES["skyline"], batches[0].schema, late=sp.Amend("1 day")))
    changing = job_of(session, tmp_path, QUERIES["skyline"], batches[0].schema, late=sp.Amend("1 day", changes=True))
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
    rows = late_rows(1, batches=1)[0]
    write_batches(tmp_path / "in", [rows])
    schema = rows.rename_columns([name.replace("weight", "Version") for name in rows.column_names]).schema
    with pytest.raises(sp.ConfigError, match="window_start, window_end, version and empty: rename Version"):
        job_of(session, tmp_path, QUERIES["skyline"], schema)
    job_of(session, tmp_path, QUERIES["skyline"], schema, late=None)


def test_a_continuous_skyline_refuses_to_amend(session: Session, tmp_path: Path):
    rows = read_batches(session, tmp_path, late_rows(1, batches=1)[0].schema)
    with pytest.raises(sp.ConfigError, match="not for a continuous skyline"):
        sp.continuous_skyline(
            rows,
            PARETO,
            time="ts",
            window="1 minute",
            checkpoint="c",
            output=sp.Console(),
            late=sp.Amend("1 day"),  # type: ignore[arg-type]
        )


def test_a_job_shows_that_it_amends(session: Session, tmp_path: Path):
    (tmp_path / "in").mkdir()
    job = job_of(session, tmp_path, QUERIES["skyline"], late_rows(1, batches=1)[0].schema, late=sp.Amend("1 day"))
    assert "late rows: amend answers for 1 day, then counted" in repr(job)
    assert replace(plan_of(QUERIES["skyline"]), amend=None).describe() == plan_of(QUERIES["skyline"]).describe()
