"""One of several queries changes, is added or removed on a live checkpoint, on Spark: stopped, killed, started again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine import jobs
from tests.engine.jobs import latest, partials
from tests.engine.reading import read_answers
from tests.engine.test_query_changes import BATCHES, HALF, PLACES, Answers, answers, by_window, killed, listed
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import SECOND, ended, finish, write_batches

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.changed_state import REWRITTEN
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.window_state import files_in
from skypane.testing import Session
from skypane.windows import Windows

WINDOWS = {
    "best": Windows(50 * SECOND, 20 * SECOND),
    "load": Windows(40 * SECOND, 20 * SECOND),
    "more": Windows(30 * SECOND, 30 * SECOND),
}
BEST = sp.Skyline("price MIN, rating MAX", by="sensor")
LOAD = sp.Aggregate("sensor", rows=sp.count(), total=sp.sum("weight"), most=sp.max("price"))
MORE = sp.TopK(2, "rating", "sensor")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOTH: dict[str, Query] = {"best": BEST, "load": LOAD}


def job_of(session: Session, folder: Path, queries: dict[str, Query], **options: Any) -> sp.Job:
    own: dict[str, Any] = {"window": {name: WINDOWS[name] for name in queries}, "late": folder / "late"}
    return jobs.job_of(session, folder, queries, SCHEMA, **own | options)


def defined(name: str, query: Query, batches: list[pa.Table] = BATCHES) -> Answers:
    plan = Plan(query, WINDOWS[name], "ts", sp.Watermark("20 seconds"))
    return by_window(local.answers(plan, [batch.select(plan.reads(batch.schema)) for batch in batches]))


@pytest.fixture
def folder(session: Session, tmp_path: Path) -> Path:
    """Both queries have answered the first batches; the others have come since."""
    begin(session, tmp_path)
    return tmp_path


def begin(session: Session, folder: Path, *, drain: bool = False, **options: Any) -> None:
    write_batches(folder / "in", BATCHES[:HALF])
    handle = ended(job_of(session, folder, BOTH, **options))
    if drain:
        handle.drain()
    write_batches(folder / "in", BATCHES[HALF:], first=HALF)


def assert_answered_by_both(folder: Path) -> None:
    for name, query in BOTH.items():
        assert answers(folder / "out" / name) == defined(name, query)


CHANGES: dict[str, tuple[Query, str]] = {
    "a function less": (sp.Aggregate("sensor", rows=sp.count(), total=sp.sum("weight")), "'most' is removed"),
    "having": (
        sp.Aggregate("sensor", rows=sp.count(), total=sp.sum("weight"), most=sp.max("price"), having="rows > 4"),
        "having was None, is 'rows > 4'",
    ),
}


@pytest.mark.parametrize(
    ("change", "place"), [("having", None), *(("a function less", place) for place in [None, *PLACES])]
)
def test_a_change_of_one_query_is_made_and_the_other_continues(
    change: str, place: str | None, folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
):
    new, text = CHANGES[change]
    queries = {"best": BEST, "load": new}
    there = {*answers(folder / "out" / "load")}
    job = job_of(session, folder, queries)
    files = listed(folder / "checkpoint")
    assert job.changes().lines == (("kept", f"query 'load': {text}"),)
    assert listed(folder / "checkpoint") == files, "to show a change changes nothing"
    if place is not None:
        killed(place, job_of(session, folder, queries), monkeypatch)
        assert job.changes(), "the earlier queries have committed the last batch"
    finish(job)
    assert not job.changes()
    assert there
    before = defined("load", LOAD)
    assert answers(folder / "out" / "load") == defined("load", new) | {window: before[window] for window in there}
    assert answers(folder / "out" / "best") == defined("best", BEST)


def test_partials_that_were_converted_are_synchronised_before_they_are_named(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
):
    """Also where the file that they come from is needed by another query, so that no file is given back."""
    synced: set[str] = set()
    named: list[frozenset[str]] = []
    sync, commit = DocumentStore.sync, Ledger.commit

    def synchronise(store: DocumentStore, *names: str) -> None:
        synced.update(names)
        sync(store, *names)

    def committed(ledger: Ledger, manifest: Manifest) -> None:
        named.append(files_in(manifest.operator) - synced)
        commit(ledger, manifest)

    monkeypatch.setattr(DocumentStore, "sync", synchronise)
    monkeypatch.setattr(Ledger, "commit", committed)
    finish(job_of(session, folder, {"best": BEST, "load": CHANGES["a function less"][0]}))
    rewritten = {name for name in synced if f"-{REWRITTEN}-" in name}
    assert rewritten
    assert not any(f"-{REWRITTEN}-" in name for names in named for name in names)


def first_window(name: str, batches: list[pa.Table]) -> datetime:
    """Return the start of the first window that begins after all times of these batches."""
    newest: datetime = max(pc.max(batch["ts"]).as_py() for batch in batches)
    slide = timedelta(microseconds=WINDOWS[name].slide)
    return EPOCH + ((newest - EPOCH) // slide + 1) * slide


@pytest.mark.parametrize("place", [None, "after the definition", "before the sink", "before the commit"])
def test_an_added_query_begins_with_the_first_window_whose_rows_are_all_to_come(
    place: str | None, folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
):
    queries = BOTH | {"more": MORE}
    job = job_of(session, folder, queries)
    first = first_window("more", BATCHES[:HALF])
    (line,) = job.changes().lines
    assert line[0] == "begins"
    assert line[1].startswith(f"query 'more': is added, with the window {first:%Y-%m-%d %H:%M} to ")
    assert line[1].endswith("as its first; rows before it are late")
    if place is not None:
        killed(place, job_of(session, folder, queries), monkeypatch)
        assert job_of(session, folder, queries).changes().lines == (line,)
    metrics = finish(job)[-1]
    assert_answered_by_both(folder)
    later = [batch.filter(pc.greater_equal(batch["ts"], pa.scalar(first))) for batch in BATCHES[HALF:]]
    got = answers(folder / "out" / "more")
    assert got
    assert got == defined("more", MORE, later)
    totals = metrics.queries["more"].totals
    assert totals["read"] == sum(batch.num_rows for batch in BATCHES[HALF:])
    assert totals["late"] >= totals["read"] - sum(batch.num_rows for batch in later)


def test_a_query_with_open_windows_is_not_removed(folder: Path, session: Session):
    job = job_of(session, folder, {"load": LOAD})
    (line,) = job.changes().lines
    assert line[0] == "refused"
    assert line[1].startswith("query 'best': is removed, and ")
    assert "which hold rows read so far, would not be answered: answer them first by a drain" in line[1]
    files = listed(folder / "checkpoint")
    with pytest.raises(sp.CheckpointError, match=r"query 'best': is removed, and .* drain"):
        job.start()
    assert listed(folder / "checkpoint") == files
    finish(job_of(session, folder, BOTH))
    assert_answered_by_both(folder)


def current(folder: Path, name: str) -> list[str]:
    """Return the rows of the last versions of a query's answers."""
    return sorted(map(repr, read_answers(folder / "out" / name).to_pylist()))


def named_by(folder: Path) -> frozenset[str]:
    """Return the files of partials that the newest manifest names."""
    return files_in(latest(folder).operator)


def read_by(plan: Plan) -> Callable[[local.Event], local.Event]:
    """Return a function that leaves the columns of rows that a query reads."""
    return lambda event: event.select(plan.reads(event.schema)) if isinstance(event, pa.Table) else event


@pytest.mark.parametrize("place", ["after the definition", "before the commit"])
def test_a_query_is_removed_after_a_drain_and_a_kill_leaves_it(
    place: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With the panes that it keeps for late rows, which are needed as long as it may continue."""
    late = sp.Amend("1 day")
    begin(session, tmp_path, drain=True, late=late)
    there = {name: current(tmp_path, name) for name in BOTH}
    needed = named_by(tmp_path)
    less = job_of(session, tmp_path, {"load": LOAD}, late=late)
    assert less.changes().lines == (("kept", "query 'best': is removed; all its windows are answered"),)
    killed(place, job_of(session, tmp_path, {"load": LOAD}, late=late), monkeypatch)
    assert needed
    assert named_by(tmp_path) == needed
    assert partials(tmp_path) >= needed
    finish(less)
    assert current(tmp_path, "best") == there["best"]
    amended = Plan(LOAD, WINDOWS["load"], "ts", sp.Watermark("20 seconds"), amend=AmendRule(86_400 * SECOND))
    events: list[local.Event] = [*BATCHES[:HALF], local.Drain(), *BATCHES[HALF:]]
    last = {answer.window: answer.rows for answer in local.answers(amended, [*map(read_by(amended), events)])}
    columns = ["sensor", "rows", "total", "most"]
    wanted = Counter(tuple(row[name] for name in columns) for table in last.values() for row in table.to_pylist())
    got = read_answers(tmp_path / "out" / "load").select(columns).to_pylist()
    assert Counter(tuple(row.values()) for row in got) == wanted
    assert not less.changes()
    found = partials(tmp_path)
    assert found == named_by(tmp_path)
    assert needed - found, "the files of the query that is gone"
    (line,) = job_of(session, tmp_path, BOTH, late=late).changes().lines
    assert line[1].startswith("query 'best': is added, with the window ")


def test_a_query_whose_removal_was_killed_continues(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    late = sp.Amend("1 day")
    begin(session, tmp_path, drain=True, late=late)
    there = {name: current(tmp_path, name) for name in BOTH}
    killed("before the commit", job_of(session, tmp_path, {"load": LOAD}, late=late), monkeypatch)
    both = job_of(session, tmp_path, BOTH, late=late)
    assert not both.changes()
    finish(both)
    for name in BOTH:
        assert len(current(tmp_path, name)) > len(there[name])


def test_what_cannot_continue_is_refused_under_its_name(folder: Path, session: Session):
    wider = {"best": sp.Skyline("price MIN, rating MAX"), "load": LOAD}
    change = job_of(session, folder, wider).changes()
    assert change.refused == (
        "query 'best': query.by was ['sensor'], is []: what the panes hold was chosen by the earlier value",
    )
    assert not change.kept
    other = job_of(session, folder, BOTH, progress=sp.KSlack()).changes()
    assert len(other.refused) == 1
    assert other.refused[0].startswith("progress.policy was 'Watermark', is 'KSlack'")


def test_a_column_more_passes_through_one_query_and_held_rows_keep_theirs(session: Session, tmp_path: Path):
    less = [name for name in SCHEMA.names if name != "weight"]
    counts = sp.Aggregate("sensor", rows=sp.count())
    *first, last = BATCHES[:HALF]
    ahead = last.slice(0, 2)
    times = pc.add(ahead["ts"], pa.scalar(400 * 86_400 * SECOND, pa.duration("us")))
    ahead = ahead.set_column(ahead.schema.get_field_index("ts"), "ts", times)
    write_batches(tmp_path / "in", [*first, pa.concat_tables([last, ahead])])

    def job(names: list[str]) -> sp.Job:
        return job_of(session, tmp_path, {"best": BEST, "load": counts}, columns=names)

    held = finish(job(less))[-1]
    assert [held.held_rows, *(one.held_rows for one in held.queries.values())] == [2, 2, 2]
    there = {*answers(tmp_path / "out" / "best")}
    write_batches(tmp_path / "in", BATCHES[HALF:], first=HALF)
    wider = job(SCHEMA.names)
    (line,) = wider.changes().lines
    assert line[0] == "begins"
    assert line[1].startswith("query 'best': column 'weight' is added: rows read so far have null in it; from ")
    ended(wider).drain()
    assert answers(tmp_path / "out" / "load").keys() >= defined("load", counts).keys()
    files = [pa.parquet.read_table(path) for path in sorted((tmp_path / "late").glob("*.parquet"))]
    late = pa.concat_tables(files, promote_options="default")
    future = late.filter(pc.equal(late["reason"], "future"))
    assert sorted(future["queries"].to_pylist()) == ["best", "best", "load", "load"]
    got = answers(tmp_path / "out" / "best")
    assert {*got} > there
    assert all("'weight': None" not in row for row in got[max(got)])
