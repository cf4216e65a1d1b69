"""More than the machine bears is refused in one sentence, before the system ends a process; nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from tests.runtime.scenarios import lines_of

import skypane as sp
from skypane.control.window_division import fixed_division
from skypane.operators import row_buffer
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import PaneQuery
from skypane.operators.window_query import WindowQuery
from skypane.runtime import memory_headroom
from skypane.runtime.spark import batch
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.arrow_transfer import _Refusing
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialReference
from skypane.runtime.spark.engine.wlq import WindowStage, sizes_of
from skypane.runtime.spark.error_causes import cause
from skypane.windows import Windows

EVERYTHING = "1000000000"
"""More MiB than any machine has: any request for memory then is refused."""
MIB = 1 << 20
QUERY = sp.Skyline("price MIN, rating MAX")


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any request in this process is refused."""
    monkeypatch.setenv(memory_headroom.SPARE, EVERYTHING)
    memory_headroom._spare.cache_clear()
    yield
    memory_headroom._spare.cache_clear()


def offers(count: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "ts": pa.array(np.sort(rng.integers(0, 60_000_000, count)), pa.timestamp("us", "UTC")),
        "price": rng.random(count),
        "rating": rng.random(count),
        "more": rng.random(count),
    })  # fmt: skip


@pytest.mark.usefixtures("no_room")
def test_one_sentence_states_needed_memory_available_memory_and_remedy():
    with pytest.raises(sp.MemoryLimitError) as error:
        memory_headroom.require(3 << 30, "the windows of a batch", memory_headroom.SHORTER_WINDOW)
    message = str(error.value)
    assert "not enough memory for the windows of a batch: it needs about 3.0 GiB more, but 0 bytes" in message
    assert message.endswith(memory_headroom.SHORTER_WINDOW)
    assert "\n" not in message


@pytest.mark.usefixtures("no_room")
def test_steps_that_are_small_together_are_not_requested():
    room = memory_headroom.Headroom("take less")
    for _ in range(15):
        room.require(MIB, 0, "rows")
    with pytest.raises(sp.MemoryLimitError, match="take less"):
        room.require(MIB, 0, "rows")


def test_memory_that_is_there_is_lent():
    memory_headroom.require(MIB, "rows", "take less")


LIMITED = """
import resource, sys
import numpy as np
from skypane.runtime import memory_headroom
from skypane.runtime.resources import room_bytes
from skypane.types import MemoryLimitError
free = room_bytes()
mapped = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (mapped + (256 << 20),) * 2)
assert room_bytes() <= 256 << 20, room_bytes()
for step in (lambda: memory_headroom.require(300 << 20, "rows", "less"), lambda: np.ones(300 << 17)):
    try:
        with memory_headroom.limited("rows", "less"):
            step()
    except MemoryLimitError as error:
        print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process reads its size from /proc")
def test_a_limit_on_a_process_counts():
    requested, refused = lines_of("-c", LIMITED)
    assert requested.startswith("not enough memory for rows: it needs about 300.0 MiB more")
    assert refused.startswith("not enough memory for rows: the system refused it, with ")


def test_a_buffer_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_buffer, "BUFFER_BYTES", 1_000)
    rows = offers(200)
    worker = PaneQuery(QUERY, EntryRules(Windows(60_000_000, 60_000_000), "ts", ("price", "rating")))
    for few in rows.to_batches(max_chunksize=10):
        worker.absorb(few)
        assert worker._buffer.bytes < 1_000
    (pane,) = worker.close().partials
    assert pane.count.rows == 200


def test_a_stage_reports_why_it_refused_its_rows():
    def refuse(_: pa.RecordBatch) -> pa.RecordBatch:
        raise MemoryError

    (report,) = _Refusing(lambda batches: map(refuse, batches))(offers(1).to_batches())
    refusal = "refused: not enough memory for the rows of a task: the system refused it"
    assert str(report.column(0)[0]).startswith(refusal)


@pytest.mark.usefixtures("no_room")
def test_a_partial_is_read_if_there_is_memory_for_it(tmp_path: Path):
    store = DocumentStore.at(str(tmp_path))
    small, large = partials.write(store, partials.attempt_name(0, 0), [offers(10), offers(1_000_000)])
    read = PartialReader(store)
    assert len(read(small)) == 10
    with pytest.raises(sp.MemoryLimitError, match="for the 1,000,000 rows of a partial"):
        read(large)


KEYS = sp.Aggregate("price", n=sp.count(), mean=sp.avg("rating"))
EVERY = Windows(20_000_000, 10_000_000)


@pytest.mark.usefixtures("no_room")
def test_a_window_reserves_memory_for_all_of_its_panes_though_each_is_small(tmp_path: Path):
    store = DocumentStore.at(str(tmp_path))
    worker = PaneQuery(KEYS, EntryRules(EVERY, "ts", ()))
    for some in offers(200_000).to_batches(max_chunksize=50_000):
        worker.absorb(some)
    parts = worker.close().partials
    store.child(PARTIALS).make()
    refs = partials.write(store.child(PARTIALS), partials.attempt_name(0, 0), [part.partial for part in parts])
    assert 4 * sum(ref.size for ref in refs) < 16 * MIB  # too little to be reserved as they are read
    written = ((part.pane, ref) for part, ref in zip(parts, refs, strict=True))
    panes = OpenPanes[PartialReference].empty(EVERY).add(written)
    query = WindowQuery(KEYS, EVERY, "UTC")
    tasks, schema = tuple(panes.all_windows()), query.output_schema(offers(1).schema)
    stage = WindowStage(query, store, store, "x", tasks, schema, fixed_division(sizes_of(tasks), 1))
    kind, message = stage.done(0)["failed"]
    assert kind == "MemoryLimitError"
    assert message.startswith("not enough memory for the rows of a window: it needs about ")


def test_a_window_whose_panes_are_merged_two_at_a_time_reserves_no_step_over_all_of_them():
    windows = Windows.of("16 seconds", "1 second")
    lifted = [(pane, KEYS.lift(offers(1_000, pane))) for pane in range(16)]
    panes: OpenPanes[pa.Table] = OpenPanes.empty(windows)
    requested = list[int]()
    worker = WindowQuery(KEYS, windows, "UTC").worker(requested.append)
    [task] = [task for task in panes.add(lifted).all_windows() if len(task.panes) == 16]
    worker.answer(task, lambda partial: partial)
    whole = step_bytes(partial for _, partial in lifted)
    assert 2 * whole / 16 < requested[-1] < whole / 2


@pytest.mark.usefixtures("no_room")
def test_windows_of_a_static_query_reserve_memory_for_their_partials():
    placed = pa.RecordBatch.from_pydict({"run": [0], "panes": [[0]], "partial": [bytes(20 * MIB)]})
    with pytest.raises(sp.MemoryLimitError, match="not enough memory for the partials of a task"):
        list(batch._AnswerRuns(WindowQuery(KEYS, EVERY, "UTC"), 8)([placed]))


def test_a_step_is_weighed_with_the_rows_that_come_before_it():
    worker = PaneQuery(QUERY, EntryRules(EVERY, "ts", ("price", "rating")))
    (rows,) = offers(1_000).to_batches()
    few = worker.step_bytes(rows)
    assert few > 3 * rows.nbytes
    worker.absorb(rows)
    assert worker.step_bytes() == few
    assert worker.step_bytes(rows) == 2 * few


def job_of(spark: SparkSession, folder: Path) -> sp.Job:
    schema = "ts timestamp, price double, rating double, more double"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return sp.stream(
        rows, QUERY, time="ts", window="20 seconds", slide="10 seconds",
        progress=sp.Watermark("1 hour"), checkpoint=folder / "checkpoint", output=folder / "out",
    )  # fmt: skip


@pytest.mark.slow
def test_a_batch_that_is_too_large_fails_in_one_sentence_and_succeeds_with_more_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = [offers(1_000), offers(700_000, 2)]
    (tmp_path / "in").mkdir()
    for number, part in enumerate(rows):
        pq.write_table(part, tmp_path / "in" / f"{number}.parquet")
    with monkeypatch.context() as little:
        little.setitem(spark.sparkContext.environment, memory_headroom.SPARE, EVERYTHING)
        handle = job_of(spark, tmp_path).start(trigger="available now")
        with pytest.raises(sp.SkypaneError, match="not enough memory for the rows of a task") as error:
            handle.await_termination(120)
    assert "\n" not in str(error.value)
    assert "rows_per_trigger, maxFilesPerTrigger" in str(error.value)
    assert isinstance(error.value.__cause__, sp.MemoryLimitError)
    assert [metrics.rows for metrics in handle.recent_metrics()] == [1_000]  # the small one needed no question
    again = job_of(spark, tmp_path).start(trigger="available now")
    again.await_termination(120)
    again.drain()
    totals = again.recent_metrics(1)[0].totals
    assert totals["read"] == totals["answered"] == 701_000
    whole = spark.read.parquet(str(tmp_path / "in"))
    expected = sp.ask(whole, QUERY, time="ts", window="20 seconds", slide="10 seconds").count()
    assert spark.read.parquet(str(tmp_path / "out")).count() == expected > 0


def test_a_static_query_reports_too_little_memory_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pq.write_table(offers(700_000), tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
    monkeypatch.setitem(spark.sparkContext.environment, memory_headroom.SPARE, EVERYTHING)
    for answer in (sp.skyline(rows, QUERY.preference), sp.ask(rows, QUERY, time="ts", window="20 seconds")):
        with pytest.raises(PythonException) as error:
            answer.count()
        assert "not enough memory for the rows of a task" in cause(error.value)


def test_partials_of_a_static_query_go_to_java_in_pieces(monkeypatch: pytest.MonkeyPatch):
    rows = offers(5_000)
    query = sp.Aggregate("price", n=sp.count(), most=sp.max("rating"))
    whole = [*batch._LiftAll(query, "error")(rows.to_batches())]
    monkeypatch.setattr(batch, "PIECE", 10_000)
    monkeypatch.setattr(batch, "BUFFER_ROWS", 1_000)
    parts = [*batch._LiftAll(query, "error")(rows.to_batches(max_chunksize=500))]
    assert (len(whole), len(parts)) == (1, 5)

    def answer(lifted: list[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(batch._CombineAll(query)(lifted)).sort_by("price")

    pieces = [*batch._CombineAll(query)(parts)]
    assert len(pieces) > 1
    assert answer(parts) == answer(whole)


def test_a_value_that_spark_cannot_move_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batch, "_MOST_PACKED", 1_000)
    with pytest.raises(sp.MemoryLimitError, match="a partial of 1,000 rows takes"):
        batch._packed(offers(1_000))


@pytest.mark.parametrize(("message", "remedy"), [
    ("Job aborted\njava.lang.OutOfMemoryError: Java heap space\n\tat x.y(Z.java)", "spark.driver.memory"),
    ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat x", "a Python worker was ended"),
])  # fmt: skip
def test_errors_of_java_about_memory_become_one_sentence(message: str, remedy: str):
    sentence = cause(PythonException(message))
    assert remedy in sentence
    assert "\n" not in sentence
