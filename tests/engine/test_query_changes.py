"""Queries that change on a live checkpoint, on Spark: stopped, killed, started again as another query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.engine import jobs
from tests.runtime.driver import SCHEMA, WINDOWS, Task, job_of
from tests.runtime.streams import SECOND, ended, finish, late_rows, read_batches, write_batches

import skypane as sp
from skypane.operators.query import Query
from skypane.operators.window_query import WindowAnswer
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.windows import Windows

BATCHES = late_rows(5, batches=11, rows=25)
HALF = 4
"""Batches of the query before."""

Answers = dict[Any, Counter[str]]


class Killed(Exception):  # noqa: N818 - what happened, not an error
    """Ends a start at an exact place, as a kill does: nothing after it is written."""


def answers(folder: Path) -> Answers:
    """Return the rows of each window in the files of an output; the columns of a file are those of its query."""
    windows: dict[Any, Counter[str]] = {}
    for path in sorted(folder.glob("*.parquet")):
        found = {*windows}
        for row in pq.read_table(path).to_pylist():
            assert row["window_start"] not in found, "a window is in the files of one batch"
            windows.setdefault(row["window_start"], Counter())[repr(row)] += 1
    return windows


def defined(query: Query, batches: list[pa.Table], schema: pa.Schema = SCHEMA) -> Answers:
    plan = Plan(query, WINDOWS, "ts", sp.Watermark("20 seconds"))
    return by_window(local.answers(plan, [batch.select(schema.names) for batch in batches]))


def by_window(answered: Iterable[WindowAnswer]) -> Answers:
    tables = [answer.rows for answer in answered]
    return {
        table["window_start"][0].as_py(): Counter(map(repr, table.to_pylist())) for table in tables if table.num_rows
    }


def listed(folder: Path) -> dict[str, int]:
    """Return the files of a checkpoint with the times at which they were changed."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def before(session: Session, tmp_path: Path) -> Callable[[Query], Task]:
    """Return a function that runs a query over the first batches, and returns its task."""

    def run(query: Query, *, drain: bool = False) -> Task:
        task = Task(str(tmp_path), late=False)
        write_batches(tmp_path / "in", BATCHES[:HALF])
        handle = ended(job_of(session, task, query))
        if drain:
            handle.drain()
        write_batches(tmp_path / "in", BATCHES[HALF:], first=HALF)
        return task

    return run


def aggregate(**more: Any) -> sp.Aggregate:
    return sp.Aggregate("sensor", **{"rows": sp.count(), "total": sp.sum("weight"), **more})


CHANGES: dict[str, tuple[Query, Query]] = {
    "a smaller k": (sp.TopK(5, "rating", "sensor"), sp.TopK(2, "rating", "sensor")),
    "having": (aggregate(), aggregate(having="rows > 4")),
    "top": (aggregate(), aggregate(top=1, rank_by="total")),
    "a function less": (aggregate(most=sp.max("price")), aggregate()),
    "a function that others answer": (aggregate(), aggregate(mean=sp.avg("weight"))),
}
PLACES = ["after the definition", "while partials are converted", "before the sink", "before the commit"]


def killed(place: str, job: sp.Job, patch: pytest.MonkeyPatch, **options: Any) -> None:
    """Start a job that ends at `place`, after which nothing is written."""

    def end(*_: Any, **__: Any) -> Any:
        raise Killed

    module = "skypane.runtime.spark.engine"
    targets = {
        "after the definition": f"{module}.shell.CommittedState.restored",
        "while partials are converted": "skypane.operators.changes.comparison.converted",
        "before the sink": f"{module}.shell.Engine._deliver",
        "before the commit": f"{module}.ledger.Ledger.commit",
    }
    with patch.context() as once:
        once.setattr(targets[place], end)
        with pytest.raises((Killed, sp.SkypaneError)):
            finish(job, **options)


def go_on(session: Session, task: Task, old: Query, new: Query, place: str | None, patch: pytest.MonkeyPatch) -> None:
    """Start `new` after `old`, if `place` is given after a start that is killed there; check all windows."""
    out = Path(task.folder) / "out"
    there, job = {*answers(out)}, job_of(session, task, new)
    if place is not None:
        killed(place, job_of(session, task, new), patch)
        assert job.changes(), "the earlier query has committed the last batch"
    assert not job.changes().begins
    assert not job.changes().refused
    finish(job)
    assert not job.changes()
    first, second = defined(old, BATCHES), defined(new, BATCHES)
    assert there
    assert second.keys() - there
    assert answers(out) == second | {window: first[window] for window in there}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_the_partials_suffice_for_begins_with_the_next_window(
    old: Query, new: Query, before: Callable[..., Task], session: Session, monkeypatch: pytest.MonkeyPatch
):
    go_on(session, before(old), old, new, None, monkeypatch)


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_between_the_start_and_the_first_commit_of_a_changed_query_loses_nothing(
    place: str, before: Callable[..., Task], session: Session, monkeypatch: pytest.MonkeyPatch
):
    old, new = CHANGES["a function less"]
    go_on(session, before(old), old, new, place, monkeypatch)


def amending(session: Session, folder: Path, late: sp.Amend | None) -> sp.Job:
    rows = read_batches(session, folder / "in", SCHEMA)
    given: dict[str, Any] = {"time": "ts", "window": WINDOWS, "progress": sp.Watermark("5 seconds"), "late": late}
    return sp.stream(rows, aggregate(), checkpoint=folder / "checkpoint", output=folder / "out", **given)


@pytest.mark.parametrize("other", [None, sp.Amend("10 seconds"), sp.Amend("10 minutes", max_bytes=1)])
def test_a_start_with_another_rule_for_late_rows_that_commits_nothing_leaves_the_job_as_it_was(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: sp.Amend | None
):
    found = []
    for name in ("alone", "another"):
        folder = tmp_path / name
        write_batches(folder / "in", BATCHES[:HALF])
        ended(amending(session, folder, sp.Amend("10 minutes")))
        write_batches(folder / "in", BATCHES[HALF:], first=HALF)
        if name == "another":
            killed("before the sink", amending(session, folder, other), monkeypatch)
        finish(amending(session, folder, sp.Amend("10 minutes")))
        tables = map(pq.read_table, sorted((folder / "out").glob("*.parquet")))
        found.append(Counter(repr(row) for table in tables for row in table.to_pylist()))
    assert found[0] == found[1]
    assert any("'version': 1" in row for row in found[0])


def test_an_added_function_is_null_where_earlier_rows_are_and_exact_from_the_stated_window_on(
    before: Callable[..., Task], session: Session
):
    old, new = aggregate(), aggregate(most=sp.max("price"))
    task = before(old)
    folder = Path(task.folder)
    there = {*answers(folder / "out")}
    job = job_of(session, task, new)
    files = listed(folder / "checkpoint")
    change = job.changes()
    assert listed(folder / "checkpoint") == files, "to show a change changes nothing"
    assert not change.kept
    assert not change.refused
    assert len(change.begins) == 1
    assert change.begins[0].startswith("'most' is added: null in the windows that hold rows read so far; from the win")
    finish(job)
    got, exact = answers(folder / "out"), defined(new, BATCHES)
    assert got.keys() == exact.keys()
    later = [window for window in sorted(got) if window not in there]
    nulls = [window for window in later if got[window] != exact[window]]
    assert nulls == later[: len(nulls)]
    assert 0 < len(nulls) < len(later)
    assert later[len(nulls)].strftime("the window %Y-%m-%d %H:%M to") in change.begins[0]
    without = defined(old, BATCHES)
    for window in nulls:
        assert all("'most': None" in row for row in got[window])
        assert Counter(row.replace(", 'most': None", "") for row in got[window].elements()) == without[window]


def test_a_change_can_be_taken_back_and_made_again_before_its_first_batch(
    before: Callable[..., Task], session: Session, monkeypatch: pytest.MonkeyPatch
):
    old, new = aggregate(), aggregate(most=sp.max("price"))
    task = before(old)
    for query in (new, aggregate(least=sp.min("price"))):
        killed("before the commit", job_of(session, task, query), monkeypatch)
    assert not job_of(session, task, old).changes()
    finish(job_of(session, task, old))
    assert answers(Path(task.folder) / "out") == defined(old, BATCHES)


def test_a_column_more_passes_on(session: Session, tmp_path: Path):
    query = sp.Skyline("price MIN, rating MAX", "sensor")
    less = pa.schema([field for field in SCHEMA if field.name != "weight"])

    def job(names: list[str]) -> sp.Job:
        return jobs.job_of(session, tmp_path, query, SCHEMA, names, window=WINDOWS, late=tmp_path / "late")

    write_batches(tmp_path / "in", BATCHES[:HALF])
    finish(job(less.names))
    there = {*answers(tmp_path / "out")}
    write_batches(tmp_path / "in", BATCHES[HALF:], first=HALF)
    changed = job(SCHEMA.names)
    assert changed.changes().begins[0].startswith("column 'weight' is added: rows read so far have null in it; from ")
    finish(changed)
    at = SCHEMA.get_field_index("weight")
    nulled = [b.set_column(at, SCHEMA.field(at), pa.nulls(b.num_rows, SCHEMA.field(at).type)) for b in BATCHES[:HALF]]
    without, whole = defined(query, BATCHES, less), defined(query, [*nulled, *BATCHES[HALF:]])
    assert answers(tmp_path / "out") == {w: (without if w in there else whole)[w] for w in whole}


def test_what_cannot_be_kept_is_refused_and_fences_nobody(before: Callable[..., Task], session: Session):
    task = before(aggregate())
    job = job_of(session, task, sp.Aggregate("id", rows=sp.count(), total=sp.sum("weight")))
    files = listed(Path(task.folder) / "checkpoint")
    assert any("states are kept for the earlier keys" in line for line in job.changes().refused)
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        job.start()
    assert listed(Path(task.folder) / "checkpoint") == files


ANOTHER = sp.TopK(2, "price", "sensor")
"""A query that cannot continue from the state of an aggregate, over other windows and by another policy."""


BEHIND = sp.Watermark("30 s")


def another(session: Session, task: Task, progress: sp.ProgressPolicy = BEHIND) -> sp.Job:
    windows: dict[str, Any] = {"window": "30 s", "slide": None, "progress": progress}
    return job_of(session, task, ANOTHER, output=f"{task.folder}/another", **windows)


def from_then_on(first: datetime) -> Answers:
    """Return what another query answers of the later batches if it begins with the window at `first`."""
    after = [batch.filter(pc.field("ts") >= pa.scalar(first)) for batch in BATCHES[HALF:]]
    return by_window(local.answers(Plan(ANOTHER, Windows(30 * SECOND, 30 * SECOND), "ts", sp.Watermark("30 s")), after))


def test_another_query_begins_at_the_offsets_of_a_drained_one(
    before: Callable[..., Task], session: Session, monkeypatch: pytest.MonkeyPatch
):
    task = before(aggregate(), drain=True)
    folder = Path(task.folder)
    answered = answers(folder / "out")
    assert sum(sum(rows.values()) for rows in answered.values())
    assert len(another(session, task).changes().refused) > 3
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        another(session, task).start()
    (text,) = another(session, task).changes("at_offsets").begins
    end = max(answered) + timedelta(microseconds=WINDOWS.length)
    first = datetime.fromtimestamp(-(-int(end.timestamp()) // 30) * 30, UTC)
    assert f"the first window of the new one is {first:%Y-%m-%d %H:%M} to" in text
    for place in ("before the sink", "before the commit"):
        killed(place, another(session, task), monkeypatch, begin="at_offsets")
    finish(another(session, task), begin="at_offsets")
    assert not another(session, task).changes()
    wanted = from_then_on(first)
    assert answers(folder / "another") == wanted
    assert answers(folder / "out") == answered
    finish(another(session, task), begin="at_offsets")
    assert answers(folder / "another") == wanted


def test_a_query_that_cannot_run_beside_another_is_drained_before_that_begins(
    before: Callable[..., Task], session: Session
):
    task = before(aggregate())
    job = another(session, task, sp.KSlack())
    change = job.changes("at_offsets")
    assert "its policy, Watermark, is not that of the new query, KSlack" in change.refused[-1]
    assert change.refused[-1].endswith(
        "Answer them by a drain of that query, with drain() or `skypane run JOB --drain`"
    )
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        job.start(begin="at_offsets")
    with pytest.raises(sp.ConfigError, match="begin must be 'at_offsets' or None, got 'offsets'"):
        job.start(begin="offsets")  # type: ignore[arg-type]


def test_windows_begin_at_the_offsets_of_a_drained_continuous_skyline_which_never_does(
    session: Session, tmp_path: Path
):
    task = Task(str(tmp_path), late=False)
    write_batches(tmp_path / "in", BATCHES[:HALF])
    front = sp.continuous_skyline(
        read_batches(session, tmp_path / "in", SCHEMA), "price MIN", time="ts", window="50 s", progress=sp.Watermark("20 seconds"),
        checkpoint=tmp_path / "checkpoint", output=tmp_path / "out",
    )  # fmt: skip
    handle, then = ended(front), another(session, task)
    assert "panes of the earlier query hold rows that have been read" in then.changes("at_offsets").refused[-1]
    handle.drain()
    write_batches(tmp_path / "in", BATCHES[HALF:], first=HALF)
    finish(then, begin="at_offsets")
    assert answers(tmp_path / "another") == from_then_on(datetime.fromtimestamp(90, UTC))
    assert front.changes("at_offsets").refused[-1].startswith("a continuous skyline cannot begin at offsets")
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        front.start(begin="at_offsets")
