"""Features that meet: several queries whose answers are amended, a changed query with kept panes, clocks that are repaired."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from tests.engine import jobs
from tests.engine.test_amended import POLICY, QUERIES, expected, run, versions_of
from tests.rows import Bag
from tests.runtime.driver import SCHEMA
from tests.runtime.late import test_clocks_off as clocks
from tests.runtime.streams import SECOND, finish, late_rows, parquet_rows, write_batches

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.windows import Windows

RULE = AmendRule(12 * SECOND)
WINDOWS = {"best": Windows(50 * SECOND, 20 * SECOND), "load": Windows(40 * SECOND, 10 * SECOND)}
ASKED = {"best": QUERIES["skyline"], "load": QUERIES["aggregate"]}


def test_each_of_several_queries_amends_its_windows_as_alone(session: Session, tmp_path: Path):
    batches = late_rows(31, batches=8, rows=90)
    write_batches(tmp_path / "in", batches)
    late = sp.Amend("12 seconds", then=tmp_path / "late")
    seen = finish(jobs.job_of(session, tmp_path, ASKED, SCHEMA, window=WINDOWS, progress=POLICY, late=late))
    for name, query in ASKED.items():
        plan = Plan(query, WINDOWS[name], "ts", POLICY, amend=RULE)
        wanted = expected(plan, [table.select(plan.reads(table.schema)) for table in batches])
        assert any(len(versions) > 1 for versions in wanted.values())
        assert versions_of(parquet_rows(tmp_path / "out" / name)) == wanted, name
        outcomes = list(local.run(plan, batches))
        assert seen[-1].queries[name].totals == outcomes[-1].totals.to_json()


def test_windows_that_were_answered_before_a_query_changed_are_final(session: Session, tmp_path: Path):
    batches, late = late_rows(33, batches=8, rows=90), sp.Amend("12 seconds")
    run(session, tmp_path, sp.Aggregate("sensor", n=sp.count()), batches[:4], late=late)
    before = versions_of(parquet_rows(tmp_path / "out"))
    changed = sp.Aggregate("sensor", n=sp.count(), having="n >= 1")
    seen = run(session, tmp_path, changed, batches[4:], first=4, late=late)
    after = versions_of(parquet_rows(tmp_path / "out"))
    assert {start: after[start] for start in before} == before
    assert sum(metrics.amended["windows"] for metrics in seen if metrics.amended) > 0
    assert max(map(len, after.values())) > 1


def test_rows_of_a_clock_that_was_off_come_back_with_repaired_times():
    """A source that is an hour ahead is quarantined; repaired, its rows enter the windows of their true times."""
    policy = sp.AqKSlack(max_drop=0.01, clocks="quarantine")
    plan = Plan(Bag(("id", "x")), clocks.WINDOWS, "ts", policy, "source", amend=AmendRule(24 * clocks.HOUR))
    rows = clocks.stream(5, {3: clocks.HOUR})
    outcomes = list(local.run(plan, rows))
    rejected = pa.concat_tables(table for outcome in outcomes for table in outcome.rejection.rows)
    rejected = rejected.filter(pc.field("reason") == "clock ahead").drop_columns("reason")
    assert rejected.num_rows > 50
    times = pc.subtract(rejected["ts"].cast(pa.int64()), clocks.HOUR).cast(rejected.schema.field("ts").type)
    back = rejected.set_column(rejected.schema.get_field_index("ts"), "ts", times)
    *_, last = local.run(plan, [*rows, local.Readmission(back, "clock ahead")])
    assert last.rejection.reasons == {}
    assert last.totals.quarantined == outcomes[-1].totals.quarantined - rejected.num_rows
    assert any(answer.version for answer in last.answers)
    last.totals.check()
