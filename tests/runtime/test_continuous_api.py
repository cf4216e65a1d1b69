"""The continuous skyline on Spark, against its definition in one process and the eager algorithm."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.operators.fronts.test_row_front import eager_updates
from tests.parameters import slow_but
from tests.runtime.continuous_streams import (
    EVERY,
    PLAN,
    QUERY,
    SCHEMA,
    WINDOW,
    eager,
    expected,
    front_of,
    job_of,
    late_ids,
    plain,
    read_front,
)
from tests.runtime.streams import (
    SECOND,
    ended,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    start_knowing,
    write_batches,
)

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.placement import PlacementChoice, place_rows
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan
from skypane.runtime import local
from skypane.runtime.spark.engine import front_program as program
from skypane.runtime.spark.engine import shard_stage
from skypane.testing import Session


def cut_anywhere(seed: int) -> list[pa.Table]:
    """Rows up to a minute late, cut into batches of any size."""
    rows = pa.concat_tables(late_rows(seed, batches=7)).combine_chunks()
    cuts = sorted(random.Random(seed).sample(range(1, rows.num_rows), 9))
    return [rows.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, rows.num_rows], strict=True)]


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def updates_of(emitted: sp.Memory) -> list[list[tuple[int, str, int]]]:
    """Return the updates of each batch."""
    return [plain(table) for table in emitted._tables.values()]


def plan_by(by: str) -> ContinuousPlan:
    return replace(PLAN, query=ContinuousSkyline(QUERY.preference, "ts", WINDOW, by or ()))


def test_its_updates_are_those_of_the_eager_algorithm_on_rows_that_are_not_late(session: Session, tmp_path: Path):
    batches, emitted = cut_anywhere(3), sp.Memory()
    write_batches(tmp_path / "in", batches)
    job = job_of(session, tmp_path, output=emitted)
    assert "the last 50 seconds of ts at any time, updated every 5 seconds" in repr(job)
    seen: list[sp.BatchMetrics] = []
    handle = ended(job, on_batch=seen.append)
    by_batch = updates_of(emitted)
    assert by_batch == expected(batches)
    late = ids(parquet_rows(tmp_path / "late"))
    assert late == late_ids(batches)
    assert len(late) == seen[-1].dropped_rows > 10
    punctuation = seen[-1].punctuation
    assert punctuation is not None
    everything = list(chain(*by_batch))
    assert everything == eager(batches, late, punctuation // EVERY * EVERY)
    assert len(everything) > 40
    there = front_of(everything)
    assert ids(handle.front()) == there == read_front(tmp_path)
    assert handle.front().schema == SCHEMA
    figures = seen[-1].front
    assert figures is not None
    assert figures["rows"] == len(there) <= figures["stored"]
    assert figures["adds"] + figures["dels"] == len(by_batch[-1])


def test_a_start_after_each_batch_emits_the_same_updates_and_removes_unneeded_state(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    batches = late_rows(4, batches=6)
    emitted: list[list[tuple[int, str, int]]] = []
    for number, batch in enumerate(batches):
        write_batches(tmp_path / "in", [batch], first=number)
        monkeypatch.setattr(program, "_SPARE", 0 if number % 2 else 10**6)
        monkeypatch.setattr(program, "_REFERENCES", 4 if number % 2 else 10**6)
        handle = ended(job_of(session, tmp_path, output=(sink := sp.Memory())))
        emitted.append(plain(sink.table()))
        assert read_front(tmp_path) == front_of(chain(*emitted)) == ids(handle.front())
        if number % 2:
            named = set((tmp_path / "checkpoint" / "skypane" / "partials").iterdir())
            stored = [path for path in named if f"-{program.STORED:05d}-" in path.name]
            assert len(stored) == 1, "all that was emitted is in one file"
    assert emitted == expected(batches)


@pytest.mark.parametrize("by", slow_but(["sensor"], ["", "sensor"]))
def test_any_number_of_shards_on_workers_emits_the_same_updates(by: str, session: Session, tmp_path: Path):
    batches = late_rows(11, batches=6)
    write_batches(tmp_path / "in", batches)
    workers, emitted = sp.WorkerOptions(wlq_workers=2), sp.Memory()
    job = job_of(session, tmp_path, by=by or (), output=emitted, workers=workers)
    dear = replace(job, settings=replace(job.settings, costs=Costs(job=0.0, shard_per_row=0.0)))
    seen: list[sp.BatchMetrics] = []

    def scale(handle: sp.StreamHandle, metrics: sp.BatchMetrics) -> None:
        seen.append(metrics)
        handle.scale(wlq=[3, 1, 2][metrics.batch_id % 3])  # a front of one shard is whole, and in the driver

    handle = start_knowing(dear, scale, trigger="available now")
    handle.await_termination(600)
    assert updates_of(emitted) == expected(batches, plan_by(by))
    assert [(m.wlq_where, m.wlq_workers) for m in seen[3:]] == [("spark", 2), ("spark", 3), ("driver", 1)]
    assert len(seen[4].wlq_busy) == 3
    decision = seen[4].decision("placement")
    assert decision is not None
    assert "in 3 shards" in decision.because
    assert ids(handle.front()) == read_front(tmp_path)
    written = (tmp_path / "checkpoint" / "skypane" / "partials").iterdir()
    assert not [path for path in written if f"-{shard_stage.REQUEST:05d}-" in path.name], "questions are forgotten"


@pytest.mark.parametrize("by", slow_but([""], ["", "sensor"]))
def test_a_front_that_moves_between_driver_threads_and_tasks_emits_the_same_updates(
    by: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With a start in the middle, which makes the front again from its partials."""
    places = [("threads", 2), ("threads", 3), ("driver", 1), ("threads", 2), ("spark", 2), ("threads", 2)]
    chosen = iter(places)
    law = place_rows

    def placed(*args: Any) -> Any:
        where, shards = next(chosen)
        return replace(law(*args), value=PlacementChoice(where, shards))  # type: ignore[arg-type]

    monkeypatch.setattr(program, "place_rows", placed)
    batches = late_rows(11, batches=6)
    emitted: list[list[tuple[int, str, int]]] = []
    seen: list[sp.BatchMetrics] = []
    for half in (batches[:2], batches[2:]):
        write_batches(tmp_path / "in", half, first=len(seen))
        workers, sink = sp.WorkerOptions(wlq_workers=3), sp.Memory()
        job = job_of(session, tmp_path, by=by or (), output=sink, workers=workers)
        handle = ended(job, on_batch=seen.append)
        emitted += updates_of(sink)
    assert emitted == expected(batches, plan_by(by))
    assert [(m.wlq_where, m.wlq_workers) for m in seen] == places
    assert [len(m.wlq_busy) for m in seen if m.wlq_where == "threads"] == [2, 3, 2, 2]
    assert ids(handle.front()) == read_front(tmp_path)


def test_threads_compare_where_the_law_finds_them_sooner(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(program, "cores", lambda: 4)
    batches = late_rows(11, batches=4)
    write_batches(tmp_path / "in", batches)
    job = job_of(session, tmp_path, by=(), output=(emitted := sp.Memory()), workers=sp.WorkerOptions(wlq_workers=3))
    dear = replace(job, settings=replace(job.settings, costs=Costs(job=1e6, front_per_pair=1.0)))
    seen = finish(dear)
    assert updates_of(emitted) == expected(batches, plan_by(""))
    assert (seen[-1].wlq_where, seen[-1].wlq_workers, len(seen[-1].wlq_busy)) == ("threads", 3, 3)
    decision = seen[-1].decision("placement")
    assert decision is not None
    assert "in 3 threads" in decision.because


def test_a_drain_emits_the_updates_of_waiting_rows_and_the_stream_continues(session: Session, tmp_path: Path):
    first, second = late_rows(5, batches=3), late_rows(6, batches=2, start=60 * SECOND)
    write_batches(tmp_path / "in", first)
    handle = ended(job_of(session, tmp_path))
    metrics = handle.drain()
    assert metrics is not None
    assert metrics.open_panes == 0
    assert handle.drain() is None
    write_batches(tmp_path / "in", second, first=3)
    finish(job_of(session, tmp_path))
    events: list[local.Event] = [*first, local.Drain(), *second]
    assert plain(parquet_rows(tmp_path / "out")) == list(chain(*expected(events)))
    assert ids(parquet_rows(tmp_path / "late")) == late_ids(events)


class Table:
    """A table in SQLite that follows a front: upserts by id, each batch in one transaction, once."""

    def __init__(self, path: Path, fail_before: int, fail_after: int) -> None:
        self.path = path
        self.fails = {(fail_before, "before"), (fail_after, "after")}
        self.emitted: dict[int, list[list[tuple[int, str, int]]]] = {}

    def __call__(self, updates: DataFrame, batch_id: int) -> None:
        table = updates.toArrow()
        self.emitted.setdefault(batch_id, []).append(plain(table))
        self._fail(batch_id, "before")
        with contextlib.closing(sqlite3.connect(self.path)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS front (id INTEGER PRIMARY KEY, price REAL)")
            database.execute("CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY)")
            if not database.execute("SELECT 1 FROM batches WHERE id = ?", [batch_id]).fetchone():
                database.execute("INSERT INTO batches VALUES (?)", [batch_id])
                self._merge(database, table.to_pylist())
        self._fail(batch_id, "after")

    def _merge(self, database: sqlite3.Connection, updates: list[dict[str, Any]]) -> None:
        """The last action of an id counts: DEL, where there are both, because a row enters once."""
        gone = {row["id"] for row in updates if row["action"] == "DEL"}
        database.executemany("DELETE FROM front WHERE id = ?", [[row] for row in gone])
        new = [(row["id"], row["price"]) for row in updates if row["action"] == "ADD" and row["id"] not in gone]
        # Without "ON CONFLICT": a row that entered twice would be an error.
        database.executemany("INSERT INTO front VALUES (?, ?)", new)

    def _fail(self, batch_id: int, when: str) -> None:
        if (batch_id, when) in self.fails:
            self.fails.remove((batch_id, when))
            raise OSError(f"{when} batch {batch_id}")

    def ids(self) -> list[int]:
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            return [row for (row,) in database.execute("SELECT id FROM front ORDER BY id")]


def test_a_table_that_gets_batches_twice_follows_the_front_as_if_each_were_delivered_once(
    session: Session, tmp_path: Path
):
    batches = late_rows(4, batches=5)
    write_batches(tmp_path / "in", batches)
    table = Table(tmp_path / "front.db", fail_before=2, fail_after=3)
    for failure in ("before batch 2", "after batch 3"):
        with pytest.raises(sp.SkypaneError, match=failure):
            finish(job_of(session, tmp_path, output=table))
    handle = ended(job_of(session, tmp_path, output=table))
    assert {batch: len(tries) for batch, tries in table.emitted.items()} == {0: 1, 1: 1, 2: 2, 3: 2, 4: 1}
    assert all(first == again for first, *rest in table.emitted.values() for again in rest)
    assert [tries[0] for tries in table.emitted.values()] == expected(batches)
    assert table.ids() == ids(handle.front()) != []


def test_criteria_whose_ranks_do_not_last_and_sixteen_of_them(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", late_rows(8, batches=4, rows=25))
    many = [f"{'-' if i % 2 else ''}price + {i} * rating as c{i}" for i in range(15)]
    exact = ["cast(price as decimal(20, 3)) as exact", "weight + 4611686018427387904 as huge"]
    columns = ["id", "ts", *exact, *many]
    chain_of_two = sp.low("huge") & sp.low("c0")
    preference = chain_of_two * sp.high("exact") * sp.parse(", ".join(f"c{i} MIN" for i in range(1, 15)))
    rows = read_batches(spark, tmp_path / "in", SCHEMA).selectExpr(*columns)
    job = sp.continuous_skyline(
        rows, preference, time="ts", window="50 seconds", checkpoint=tmp_path / "c", output=(emitted := sp.Memory())
    )
    finish(job)
    files = sorted((tmp_path / "in").glob("*.parquet"))
    batches = [spark.read.parquet(str(file)).selectExpr(*columns).toArrow().cast(job.settings.schema) for file in files]
    plan = job.settings.plan
    assert isinstance(plan, ContinuousPlan)
    assert len(plan.query.preference.levels[0]) == 16
    assert updates_of(emitted) == expected(batches, plan)


def test_the_history_of_a_static_table_is_when_each_row_is_on_the_front(spark: SparkSession, tmp_path: Path):
    batches = late_rows(9, batches=3)
    write_batches(tmp_path / "in", batches, files=2)
    rows = spark.read.parquet(str(tmp_path / "in"))
    for by in ([], ["sensor"]):
        history = sp.skyline_history(rows, QUERY.preference, time="ts", window="50 seconds", by=by)
        assert history.columns == ["front_from", "front_to", *rows.columns]
        got = history.selectExpr("unix_micros(front_from)", "unix_micros(front_to)", "id").toArrow()
        query = ContinuousSkyline(QUERY.preference, "ts", WINDOW, by)
        updates = eager_updates(query, pa.concat_tables(batches).combine_chunks())
        enters, leaves = ({row: time for time, action, row in updates if action == one} for one in ("ADD", "DEL"))
        wanted = sorted((enters[row], leaves[row], row) for row in enters)
        assert sorted(zip(*(column.to_pylist() for column in got.columns), strict=True)) == wanted


def test_an_invalid_option_is_refused_with_field_value_and_remedy(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", late_rows(1, batches=1))
    static = spark.read.parquet(str(tmp_path / "in"))
    stream = read_batches(spark, tmp_path / "in", SCHEMA)
    places = {"checkpoint": tmp_path / "c", "output": sp.Memory()}
    options: dict[str, Any] = {"time": "ts", "window": "50 seconds", **places}
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (stream, "price MIN", {"window": None, "output": None}, "window= and output= are needed"),
        (stream, "price MIN", {"window": "0 seconds"}, "window must be longer than 0 and at most 100 years, got 0"),
        (stream, "price MIN", {"window": "40000 days"}, "at most 100 years, got 3456000000000000"),
        (stream, "price MIN", {"window": 10}, "window must be a text such as '10 minutes'"),
        (stream, "price MIN", {"every": "1 minute"}, "every must be longer than 0 and at most the window, '50 seconds', got"),
        (stream, "price MIN", {"every": "0 s"}, "every must be longer than 0"),
        (stream, "prize MIN", {}, "unknown column 'prize'; there are id, ts"),
        (stream, "sensor MIN", {}, "is text, which has no better and worse values"),
        (stream, sp.low("price") & sp.low("rating"), {}, "continuous skylines need a product"),
        (stream, "price MIN", {"time": "id"}, "time column 'id' is of type int64"),
        (stream, "price MIN", {"by": "nowhere"}, "column 'nowhere' does not exist"),
        (stream, "price MIN", {"output": tmp_path / "o", "front": tmp_path / "x" / ".." / "o"}, "output and front must be two"),
        (stream, "price MIN", {"front": 3}, "front must be a path"),
        (stream.withColumnRenamed("sent", "Action"), "price MIN", {}, "rename Action"),
        (static, "price MIN", {}, r"this DataFrame is static: .* query it with sp\.skyline_history\(rows"),
        (stream, "price MIN", {"workers": sp.WorkerOptions(elastic=sp.Fuzzy())}, "elastic= is not for a continuous skyline"),
    ]  # fmt: skip
    for rows, preference, changed, complaint in cases:
        with pytest.raises(sp.ConfigError, match=complaint):
            sp.continuous_skyline(rows, preference, **options | changed)
    of_history: list[tuple[Any, dict[str, Any], str]] = [
        (static, {"time": None, "window": None}, "time= and window= are needed"),
        (static, {"invalid": "maybe"}, "invalid must be 'error' or 'drop', got 'maybe'"),
        (static.withColumnRenamed("sent", "front_to"), {}, "rename front_to"),
        (stream, {}, r"this DataFrame is a stream, .* make a job of it with sp\.continuous_skyline\(rows"),
    ]
    for rows, changed, complaint in of_history:
        with pytest.raises(sp.ConfigError, match=complaint):
            sp.skyline_history(rows, "price MIN", **{"time": "ts", "window": "50 seconds"} | changed)
    windowed = sp.stream(stream, sp.Skyline("price MIN"), **options)
    handle = windowed.start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match="answers windows and keeps no front"):
        handle.front()
    handle.await_termination(600)


def test_a_drain_adds_held_rows_to_the_front_or_quarantines_them(session: Session, tmp_path: Path):
    """Twenty rows a month later are accepted, one a year later is not; a start of its own drains."""
    first, later = late_rows(5, batches=2), late_rows(6, batches=1, rows=20, start=30 * 86_400 * SECOND)[0]
    year = later.slice(0, 1).set_column(1, "ts", pa.array([365 * 86_400 * SECOND], pa.timestamp("us", "UTC")))
    batches = [*first, pa.concat_tables([later, year])]
    write_batches(tmp_path / "in", batches)
    seen = finish(job_of(session, tmp_path))
    assert seen[-1].held_rows == seen[-1].totals["held"] == 21
    handle = ended(job_of(session, tmp_path))
    metrics = handle.drain()
    assert metrics is not None
    assert (metrics.quarantined, metrics.totals["held"], metrics.totals["open"]) == ({"future": 1}, 0, 0)
    assert metrics.totals["read"] == metrics.totals["answered"] + metrics.totals["late"] + 1 == 101
    events: list[local.Event] = [*batches, local.Drain()]
    assert plain(parquet_rows(tmp_path / "out")) == list(chain(*expected(events)))
    rejected = parquet_rows(tmp_path / "late")
    future = rejected.filter(pc.equal(rejected["reason"], "future"))["ts"].cast(pa.int64()).to_pylist()
    assert future == [365 * 86_400 * SECOND]


def test_rows_that_cannot_be_ranked_or_placed_are_quarantined_with_their_reason(session: Session, tmp_path: Path):
    """A clock that jumps a year is held; one that the stream follows empties the front first, at the times of its rows."""
    usual = late_rows(2, batches=2)
    odd = usual[1].slice(0, 4)
    times = odd["ts"].cast(pa.int64()).to_pylist()
    bad = odd.set_column(1, "ts", pa.array([None, *times[1:3], 365 * 86_400 * SECOND], pa.timestamp("us", "UTC")))
    bad = bad.set_column(3, "price", pa.array([1.0, float("nan"), None, 1.0]))
    jump = late_rows(3, batches=1, start=400 * 86_400 * SECOND)[0]
    old = usual[0].slice(0, 1).set_column(0, "id", pa.array([10**6], usual[0].schema.field("id").type))
    old = old.set_column(1, "ts", pa.array([-10 * WINDOW], pa.timestamp("us", "UTC")))
    batches = [usual[0], pa.concat_tables([usual[1], bad, old]), jump]
    write_batches(tmp_path / "in", batches)
    seen = finish(job_of(session, tmp_path, output=(emitted := sp.Memory())))
    assert updates_of(emitted) == expected(batches)
    assert seen[1].quarantined == {"null ts": 1, "NaN price": 1, "null price": 1}
    assert seen[1].held_rows == 1
    rejected = parquet_rows(tmp_path / "late")
    reasons = dict(zip(rejected["id"].to_pylist(), rejected["reason"].to_pylist(), strict=True))
    assert {"null ts", "NaN price", "null price"} <= {*reasons.values()}
    assert reasons[old["id"][0].as_py()] == "late", "it was older than the window when it came"


@pytest.mark.parametrize("what", ["damaged", "gone"])
def test_a_partial_that_the_front_is_made_of_is_refused_at_the_start_if_it_is_not_as_written(
    what: str, session: Session, finished: Path, tmp_path: Path
):
    folder = shutil.copytree(finished, tmp_path / "copy")
    path = min((folder / "checkpoint" / "skypane" / "partials").glob("*.arrow"))
    if what == "gone":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
    with pytest.raises(sp.CheckpointError, match=rf"{path.name} is {what}.*restore the whole checkpoint"):
        job_of(session, folder).start()


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"window": "60 seconds"}, r"query\.window was 50000000, is 60000000"),
        ({"every": "2 seconds"}, r"window\.length was 5000000, is 2000000"),
        ({"by": ()}, r"query\.by was \['sensor'\], is \[\]"),
    ],
)
def test_a_checkpoint_of_another_front_is_refused(changed, difference, session: Session, finished: Path):
    with pytest.raises(sp.CheckpointError, match=f"belongs to another query.*{difference}"):
        job_of(session, finished, **changed).start()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("front")
    write_batches(folder / "in", late_rows(2, batches=2))
    finish(job_of(Session(), folder))
    return folder


def test_the_folder_of_the_front_belongs_to_one_query(session: Session, finished: Path, tmp_path: Path):
    (tmp_path / "in").symlink_to(finished / "in")
    with pytest.raises(sp.CheckpointError, match="holds the output of another query"):
        job_of(session, tmp_path, front=finished / "front").start()
    with pytest.raises(sp.CheckpointError, match="holds the rows of the front of this query, so late rows cannot"):
        job_of(session, finished, late=finished / "front", front=None).start()
