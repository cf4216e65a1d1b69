"""What workers do in the two stages, and what the engine remembers, without a Java in sight."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.aggregates.tables import SCHEMA as KEYED_SCHEMA
from tests.operators.aggregates.tables import tables as tables_of_keys
from tests.rows import SCHEMA, SKYLINE, multiset, split, tables, windows

import skypane as sp
from skypane import Aggregate
from skypane.control.window_division import Division, Piece, fixed_division
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.progress import KSlack
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.plq import LiftReports, LiftStage, TaskReport
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.engine.wlq import (
    WindowStage,
    distinct_row_count,
    in_driver,
    in_threads,
    sizes_of,
    together,
)
from skypane.windows import Windows

RefTask = WindowTask[PartialReference]
FILES = [attempt_name(0, task) for task in range(2)]
NUMBERS = st.integers(0, 1_000)
REFS = st.builds(PartialReference, st.sampled_from(FILES), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
PANES = st.dictionaries(st.integers(-5, 20), st.lists(REFS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=6)
TASKS = st.lists(PANES, min_size=1, max_size=20).map(
    lambda windows: [WindowTask(k, tuple(sorted(panes.items()))) for k, panes in enumerate(windows)]
)
FEW = settings(max_examples=20)  # each example writes files


def store(factory: pytest.TempPathFactory) -> DocumentStore:
    root = DocumentStore.at(str(factory.mktemp("stages")))
    for name in (PARTIALS, "rejected", "answers"):
        root.child(name).make()
    return root


def plan(shape: Windows) -> Plan:
    return Plan(SKYLINE, shape, "time", KSlack())


def row_count(task: RefTask) -> int:
    """The rows in the partials of a window."""
    return sum(ref.rows for _, refs in task.panes for ref in refs)


def fixed_of(tasks: list[RefTask], runs: int, parts: int = 1) -> Division:
    return fixed_division(sizes_of(tasks), runs, parts)


def lifted(made: Plan, folder: DocumentStore, parts: list[pa.Table]) -> LiftReports:
    """The reports of a batch whose rows come in these parts, one to each task."""
    stage = LiftStage(made.query, made.gate, folder, 7)
    reports = [report for part in parts for report in stage(part.to_batches())]
    return LiftReports(tuple(TaskReport.from_json(report.column(0)[0].as_py()) for report in reports))


class Lifted:
    """All windows of rows that came in these parts; `here`: what the driver answers, and `work`: what it took."""

    def __init__(self, made: Plan, folder: DocumentStore, parts: list[pa.Table]) -> None:
        level = lifted(made, folder, parts)
        panes = OpenPanes[PartialReference].empty(made.windows).add((pane.count.pane, pane.ref) for pane in level.panes)
        self.folder, self.tasks = folder, panes.all_windows()
        self.schema, self.query = made.validate(parts[0].schema), made.window_query(parts[0].schema)
        self.here, self.work = in_driver(self.query.worker(), folder, self.tasks, self.schema)

    def stage(self, division: Division) -> WindowStage:
        answers = self.folder.child("answers")
        return WindowStage(self.query, self.folder, answers, "7", tuple(self.tasks), self.schema, division)

    def run(self, stage: WindowStage) -> tuple[list[dict[str, Any]], pa.Table]:
        """Return what the runs of a stage report, and the rows in their files."""
        numbers = pa.RecordBatch.from_pydict({"id": list(range(stage.tasks))})
        done = [json.loads(text) for batch in stage([numbers]) for text in batch.column(0).to_pylist()]
        names = [name for run in done for name, *_ in run["files"]]
        there = [self.folder.child("answers").read_parquet(name, self.schema) for name in names]
        return done, pa.concat_tables([self.schema.empty_table(), *there])


@FEW
@given(tables(clean=False), windows(), st.lists(st.integers(0, 25), max_size=3))
def test_a_batch_is_lifted_alike_however_its_rows_are_dealt_to_tasks(
    tmp_path_factory: pytest.TempPathFactory, rows: pa.Table, shape: Windows, cuts: list[int]
):
    folder, made = store(tmp_path_factory), plan(shape)
    alone = lifted(made, folder, [rows])
    together = lifted(made, folder, split(rows, [min(at, rows.num_rows) for at in cuts]))
    load = PartialReader(folder.child(PARTIALS))
    for level in (alone, together):
        assert level.fingerprint == alone.fingerprint
        assert sum(task.rows for task in level.work) == rows.num_rows
        counted: dict[int, int] = {}
        for count in level.counts:
            counted[count.pane] = counted.get(count.pane, 0) + count.rows
        assert counted == {pane.count.pane: pane.count.rows for pane in alone.panes}
        for pane in alone.panes:
            partials = [load(other.ref) for other in level.panes if other.count.pane == pane.count.pane]
            assert multiset(SKYLINE.combine(partials)) == multiset(load(pane.ref))


@FEW
@given(tables(), windows(), st.integers(1, 4), st.lists(st.integers(0, 25), max_size=3))
def test_runs_on_workers_answer_as_the_driver_and_the_definition(
    tmp_path_factory: pytest.TempPathFactory, rows: pa.Table, shape: Windows, runs: int, cuts: list[int]
):
    parts = split(rows, [min(at, rows.num_rows) for at in cuts])
    batch = Lifted(plan(shape), store(tmp_path_factory), parts)
    tasks, here, stage = batch.tasks, batch.here, batch.stage(fixed_of(batch.tasks, runs))
    done, there = batch.run(stage)
    assert [tuple(window) for run in done for window in run["windows"]] == list(here.windows)
    answered = multiset(here.table())
    assert multiset(there) == answered
    if tasks:
        in_turn, work = in_threads(stage)
        assert (multiset(in_turn.table()), in_turn.windows) == (answered, here.windows)
        assert sum(run.windows for run in work.runs) == len(tasks)
    assert here.row_count == sum(answered.values())
    assert [run.windows for run in batch.work.runs] == [len(tasks)]
    assert all(run["busy"] > 0 for run in done), "each run tells how long it took"
    for window, size in here.windows:
        start, end = shape.bounds(window)
        inside = rows.filter((pc.field("time") >= _stamp(start)) & (pc.field("time") < _stamp(end)))
        assert size == SKYLINE.lift(inside).num_rows > 0


#: what people look at, command lines, jobs in files and other drivers of the same policies
NOT_FOR_WORKERS = frozenset(
    "matplotlib rich PIL pydantic skypane.cli skypane.jobs skypane.reporting skypane.describing skypane_papers "
    "skypane.datasets skypane.workloads skypane_papers.multiway skypane.demo skypane.runtime.sim skypane.runtime.local".split()
)


def test_workers_load_nothing_that_only_people_and_other_runtimes_need():
    shape = Windows(20, 10)
    made = plan(shape)
    query, folder = made.window_query(SCHEMA), DocumentStore("/nowhere")
    stages = (
        LiftStage(made.query, made.gate, folder, 7),
        WindowStage(query, folder, folder, "7", (), SCHEMA, Division(())),
    )
    load = "import pickle, sys; pickle.load(sys.stdin.buffer); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", load], input=pickle.dumps(stages), capture_output=True, check=True)
    loaded = done.stdout.decode().split()
    assert "skypane.runtime.spark.engine.wlq" in loaded
    assert not NOT_FOR_WORKERS & set(loaded)
    assert "pandas" not in loaded, "pyarrow loads it, where it meets an array of NumPy's"


BEST = sp.Skyline("id MIN, order MAX", by=("key", "grade"))
KEYED = Aggregate(["key", "text"], n=sp.count(), total=sp.sum("f"), last=sp.last("text", order="i"))


SECONDS = st.integers(1, 5).map(lambda length: Windows(length * 1_000_000, 1_000_000))


@FEW
@given(tables_of_keys(60), SECONDS, st.integers(1, 3), st.integers(2, 4))
def test_workers_that_share_windows_by_keys_answer_as_the_driver(
    tmp_path_factory: pytest.TempPathFactory, rows: pa.Table, shape: Windows, runs: int, parts: int
):
    halves = split(rows, [rows.num_rows // 2])
    batch = Lifted(Plan(KEYED, shape, "at", KSlack()), store(tmp_path_factory), halves)
    stage = batch.stage(fixed_of(batch.tasks, runs, parts))
    assert stage.tasks % parts == 0
    done, there = batch.run(stage)
    assert multiset(there) == multiset(batch.here.table())
    assert together(run["windows"] for run in done) == batch.here.windows


@st.composite
def divisions(draw: st.DrawFn, windows: int, most_parts: int) -> Division:
    """Any runs of so many windows, each in any number of parts, dealt to tasks in any way."""
    edges = sorted({0, windows, *draw(st.lists(st.integers(0, windows), max_size=5))})
    pieces = []
    for begin, end in pairwise(edges):
        parts = draw(st.integers(1, most_parts))
        pieces += [Piece(begin, end, part, parts) for part in range(parts)]
    tasks: dict[int, list[Piece]] = {}
    for piece in pieces:
        tasks.setdefault(draw(st.integers(0, 3)), []).append(piece)
    return Division(tuple(map(tuple, tasks.values())))


@FEW
@given(
    tables_of_keys(60),
    SECONDS,
    st.sampled_from([(KEYED, 4), (BEST, 4), (sp.TopK(2, "small", by="key"), 3), (sp.Skyline("id MIN, order MAX"), 1)]),
    st.data(),
)
def test_any_division_of_windows_answers_as_the_driver(
    tmp_path_factory: pytest.TempPathFactory,
    rows: pa.Table,
    shape: Windows,
    query: tuple[Query, int],
    data: st.DataObject,
):
    """Runs of any windows, each in a number of parts of its own, several of them in one task."""
    numbers = pa.array(np.arange(rows.num_rows, dtype=np.float64))
    rows = rows.append_column("id", numbers).append_column("order", pc.bit_wise_xor(numbers.cast(pa.int64()), 5))
    rows = rows.set_column(rows.schema.get_field_index("small"), "small", pc.fill_null(rows["small"], 0.0))
    halves = split(rows, [rows.num_rows // 2])
    batch = Lifted(Plan(query[0], shape, "at", KSlack()), store(tmp_path_factory), halves)
    if not batch.tasks:
        return
    division = data.draw(divisions(len(batch.tasks), query[1]))
    there, work = in_threads(batch.stage(division))
    assert (there.windows, there.row_count) == (batch.here.windows, batch.here.row_count)
    assert multiset(there.table()) == multiset(batch.here.table())
    assert [(piece.begin, piece.end, piece.part) for piece in work.pieces] == [piece[:3] for piece in division.pieces]
    assert all(piece.busy > 0 for piece in work.pieces)
    assert len(work.runs) == len(division.tasks)


@pytest.mark.parametrize(
    ("query", "divisible"),
    [
        (KEYED, True),
        (Aggregate(n=sp.count()), False),
        (Aggregate("key", n=sp.count(), top=3, rank_by="n"), False),
        (Aggregate("key", n=sp.count(), having="n > 1"), True),
        pytest.param(Aggregate("place", n=sp.count()), False, id="keys that have no hash"),
    ],
)
def test_windows_are_shared_by_keys_where_each_key_has_an_answer(query: Aggregate, divisible: bool):
    schema = KEYED_SCHEMA.append(pa.field("place", pa.struct([("x", pa.int64())])))
    assert query.divisible(schema) is divisible


def _stamp(time: int) -> pa.Scalar:
    return pa.scalar(time, pa.timestamp("us", "UTC"))


@given(TASKS, st.integers(1, 8))
def test_runs_are_consecutive_and_of_about_the_same_weight(tasks: list[RefTask], runs: int):
    pieces = fixed_of(tasks, runs).pieces
    parts = [tasks[piece.begin : piece.end] for piece in pieces]
    assert [task for part in parts for task in part] == tasks
    assert 1 <= len(parts) <= runs
    assert all(parts)
    weights = [row_count(task) + 1 for task in tasks]
    for part in parts:
        assert sum(row_count(task) + 1 for task in part) <= sum(weights) / runs + max(weights)


@given(TASKS)
def test_the_sizes_of_windows_are_those_of_their_panes(tasks: list[RefTask]):
    """A pane that the window before holds with the same partials is not added again."""
    for at, (task, size) in enumerate(zip(tasks, sizes_of(tasks), strict=True)):
        held = dict(tasks[at - 1].panes) if at else {}
        added = [refs for pane, refs in task.panes if held.get(pane) != refs]
        assert size == (row_count(task), sum(ref.rows for refs in added for ref in refs))


@given(TASKS)
def test_a_pane_of_several_windows_counts_once(tasks: list[RefTask]):
    assert distinct_row_count(tasks) <= sum(row_count(task) for task in tasks)
    assert distinct_row_count([tasks[0], tasks[0]]) == row_count(tasks[0])


@FEW
@given(PANES, st.none() | st.integers(-9, 9))
def test_what_is_remembered_survives_the_ledger(
    panes: dict[int, tuple[PartialReference, ...]], next_window: int | None
):
    made = plan(Windows(20, 10))
    state = WindowState(made.progress.init(), OpenPanes(made.windows, panes, next_window))
    saved = json.loads(json.dumps([made.progress.snapshot(state.progress), state.snapshot()]))
    assert WindowState.restored(made, *saved) == state
    assert state.files == {ref.file for refs in panes.values() for ref in refs}
    assert state.rows == sum(ref.rows for refs in panes.values() for ref in refs)
