"""Answers that wait for a file of several batches: each is read once, after at most the roll and a batch, whatever is killed."""

from __future__ import annotations

import random
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.chaos.driver import Stream
from tests.chaos.naive import SCHEMA, SECOND, SHORT, START
from tests.rows import flipped
from tests.runtime.rolling_stream import ROWS, SPARK, Rolling, manifests
from tests.stores.memory import in_memory

import skypane as sp
from skypane.control.parallelism import Workers
from skypane.plan import Plan
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle
from skypane.runtime.spark.batch_listeners import BatchListeners
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import FORMAT, WITH_OUTBOX, Ledger
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.input_status import InputStatus
from skypane.runtime.spark.roll_clock import RollClock
from skypane.runtime.spark.sinks import roll
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.roll import PARTS, Roll
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.runtime.spark.waiting_answers import waiting_answers
from skypane.testing import Session
from skypane.types import CheckpointError, ConfigError
from skypane.windows import Windows

ROLL, SECONDS = "5 minutes", 300
OPERATIONS = ("open_output", "move", "remove", "remove_folder", "write_parquet", "write_version", "write_json", "clear")


class KilledError(BaseException):
    """Ends a driver at an operation on files, for good."""


@contextmanager
def killed_at(operation: int, *, after: bool) -> Iterator[None]:
    """Let the driver end before or after so many operations on files."""
    left = operation

    def counted(does: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and not after:
                raise KilledError
            result = does(*arguments, **options)
            if left == 0:
                raise KilledError
            return result

        return counting

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(DocumentStore, name, counted(getattr(DocumentStore, name)))
        with suppress(KilledError):
            yield


class Driven:
    """A job whose drivers are killed, replaced and woken; after each step the folder is compared with the definition."""

    def __init__(self, job: Rolling) -> None:
        self.job = job
        self._drivers: list[Engine] = []
        #: when each batch was committed, by the clock of the job
        self._committed: dict[int, float] = {}
        self.start(ROLL, 1 << 20)

    def start(self, roll: str | None, size: int) -> None:
        self._drivers.append(self.job.engine(roll, size))
        assert self._seen() == self.job.committed(), "a start delivers all that was committed"

    def wait(self, seconds: float) -> None:
        self.job.clock.seconds += seconds

    def batch(self, operation: int | None = None, after: bool = False) -> None:
        """Run the next batch; the driver ends at an operation, if it comes to that, and another starts."""
        self._while_killed(operation, after, lambda: self._drivers[-1](ROWS, self.job.committed()))

    def look(self, operation: int | None = None, after: bool = False) -> None:
        """Let the clock of the sinks look whether a file is due."""
        self._while_killed(operation, after, lambda: self._drivers[-1].publish_due(SPARK))
        seen = self._seen()
        waits = [since for batch, since in self._committed.items() if batch >= seen]
        assert all(self.job.clock.seconds - since < SECONDS for since in waits), (
            "no answer waits for longer than the roll"
        )

    def wake(self, which: int) -> None:
        """Let an earlier driver go on with a file that it was about to write, or with a batch."""
        if len(self._drivers) == 1:
            return
        before, driver = self.job.read(), self._drivers[which % (len(self._drivers) - 1)]
        for act in (lambda: driver.publish(SPARK), lambda: driver(ROWS, self.job.committed())):
            with suppress(CheckpointError, FileNotFoundError):
                act()
        assert self.job.read() == before, "a fenced driver adds nothing"

    def _while_killed(self, operation: int | None, after: bool, act: Callable[[], None]) -> None:
        done = False
        with nullcontext() if operation is None else killed_at(operation, after=after):
            act()
            done = True
        if not done:
            self._seen()  # of what the killed one has left
            self.start(ROLL, 1 << 20)
        for batch in range(len(self._committed), self.job.committed()):
            self._committed[batch] = self.job.clock.seconds
        self._seen()

    def _seen(self) -> int:
        """Return how many committed batches a reader sees, in order, each with all its rows, and once."""
        rows, late, committed = self.job.read(), self.job.read("late"), self.job.committed()
        assert max(Counter(late).values(), default=0) <= 1
        part = [row for row in rows if row[0] == committed]  # of a batch that was not committed
        assert set(part) <= set(self.job.expected(committed + 1))
        assert len(set(part)) == len(part)
        rest = rows[: len(rows) - len(part)]
        seen = [count for count in range(committed + 1) if rest == self.job.expected(count)]
        assert seen, rows
        assert not part or seen[-1] == committed, "no batch comes before an earlier one"
        return seen[-1]


steps = st.one_of(
    st.tuples(st.just("batch")),
    st.tuples(st.just("batch"), st.integers(1, 14), st.booleans()),
    st.tuples(st.just("look")),
    st.tuples(st.just("look"), st.integers(1, 8), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1.0, SECONDS / 2, float(SECONDS)])),
    st.tuples(st.just("start"), st.sampled_from([None, ROLL]), st.sampled_from([1, 3_000, 1 << 20])),
    st.tuples(st.just("wake"), st.integers(0, 5)),
)
"""Methods of Driven, and what they are given."""
sizes = st.lists(st.integers(0, 3), min_size=30, max_size=30).map(lambda rows: dict(enumerate(rows)))
histories = given(sizes, st.lists(steps, min_size=5, max_size=25), st.booleans())


@histories
def test_each_answer_is_read_once_whatever_happens_on_a_disk(
    answers: dict[int, int], taken: list[tuple[Any, ...]], in_files: bool
):
    with tempfile.TemporaryDirectory() as folder:
        go_through(Rolling(folder, answers), taken, in_files=in_files)


@histories
def test_each_answer_is_read_once_whatever_happens_in_an_object_store(
    answers: dict[int, int], taken: list[tuple[Any, ...]], in_files: bool
):
    with in_memory():
        go_through(Rolling(f"s3://bucket/{uuid.uuid4().hex}", answers), taken, in_files=in_files)


def go_through(job: Rolling, taken: list[tuple[Any, ...]], *, in_files: bool) -> None:
    with job.programs(in_files=in_files):
        driven = Driven(job)
        for step, *arguments in taken:
            getattr(driven, step)(*arguments)
        engine = job.engine(None)
        engine(ROWS, job.committed())  # which may have been delivered before, without a commit
    done = job.committed()
    assert job.read() == job.expected(done)
    assert job.read("late") == job.expected_late(done)
    assert job.waiting() == {}
    assert DocumentStore.at(f"{job.place}/checkpoint").child("skypane").child("partials").names() == []


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Rolling]:
    rolling = Rolling(str(tmp_path), dict.fromkeys(range(30), 2))
    with rolling.programs():
        yield rolling


def batches(engine: Engine, *numbers: int) -> None:
    for number in numbers:
        engine(ROWS, number)


def with_sinks(settings: JobSettings, **others: Any) -> JobSettings:
    """Return settings with other sinks for some roles."""
    assert isinstance(settings.sinks, Sinks)
    return replace(settings, sinks=replace(settings.sinks, **others))


def handle_of(engine: Engine) -> StreamHandle:
    query = cast("StreamingQuery", None)
    return StreamHandle(query, engine, BatchLifecycle(engine), SPARK, InputStatus(), BatchListeners())


def test_batches_share_a_file_when_the_oldest_has_waited_for_long_enough(job: Rolling):
    engine = job.engine(ROLL)
    batches(engine, 0, 1, 2, 3)
    assert job.read() == job.expected(1), "the first batch of a start does not wait"
    job.clock.seconds += SECONDS - 1
    batches(engine, 4)
    assert job.read() == job.expected(1)
    job.clock.seconds += 1
    batches(engine, 5)
    assert job.read() == job.expected(6)
    names = [f"part-{number:012d}-00000.parquet" for number in (0, 5)]
    assert [name for name in DocumentStore.at(f"{job.place}/out").names() if name != "_skypane.json"] == names


def test_a_file_is_written_earlier_when_it_has_the_bytes(job: Rolling):
    engine = job.engine("1 day", 1)
    batches(engine, 0, 1, 2)
    assert job.read() == job.expected(3)


def test_a_file_is_written_earlier_when_manifests_would_grow_long(job: Rolling, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(roll, "PARTS", 5)
    engine = job.engine("1 day", 1 << 40)
    batches(engine, *range(5))
    assert job.read() == job.expected(1)
    batches(engine, 5)
    assert job.read() == job.expected(6)


def test_the_clock_writes_files_while_no_batch_comes_and_at_the_end_of_the_query(job: Rolling):
    engine = job.engine(ROLL)
    batches(engine, 0, 1)
    seen = []

    def is_active() -> bool:
        seen.append(job.read())
        if len(seen) == 2:
            job.clock.seconds += SECONDS
        if len(seen) == 3:
            batches(engine, 2)
        return len(seen) < 4

    RollClock(engine, SPARK, is_active, every=0.001).run()
    assert seen == [job.expected(1), job.expected(1), job.expected(2), job.expected(2)]
    assert job.read() == job.expected(3)


def full(*_: object) -> None:
    raise OSError("no space left on device")


def test_the_clock_outlives_a_disk_that_is_full(job: Rolling, caplog: pytest.LogCaptureFixture):
    """The file that could not be completed is written before the next batch, and no other in its place."""
    engine = job.engine(ROLL)
    batches(engine, 0, 1)
    job.clock.seconds += SECONDS
    active = iter([True, True, True, False])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "empty_outbox", full)
        RollClock(engine, SPARK, lambda: next(active), every=0.001).run()
    assert caplog.text.count("no space left on device") == 1, "it is logged once"
    assert job.read() == job.expected(2)
    batches(engine, 2)
    engine.publish(SPARK)
    assert job.read() == job.expected(3)


def test_a_listener_gets_a_batch_whose_file_cannot_be_written(job: Rolling, monkeypatch: pytest.MonkeyPatch):
    """The batch is committed: no later start runs it again, or reports it."""
    seen: list[int] = []
    engine = Engine(job.settings(ROLL, 1), Workers(1, 1), lambda metrics: seen.append(metrics.batch_id))
    monkeypatch.setattr(Ledger, "empty_outbox", full)
    batches(engine, 0)
    with pytest.raises(OSError, match="no space left"):
        batches(engine, 1)
    assert seen == [0, 1]


def test_answers_that_wait_can_be_shown(job: Rolling):
    checkpoint = f"{job.place}/checkpoint"
    assert waiting_answers(checkpoint, 0) is None
    engine = job.engine(ROLL)
    batches(engine, 0, 1, 2)
    assert waiting_answers(checkpoint, 0) is None
    shown = waiting_answers(checkpoint, 2)
    assert shown is not None
    assert shown.to_pydict() == {"batch": [2, 2], "row": [0, 1]}
    engine.publish(SPARK)
    assert waiting_answers(checkpoint, 2) is None


def test_versions_that_know_no_waiting_rows_cannot_read_a_manifest_with_them(job: Rolling, tmp_path: Path):
    batches(job.engine(ROLL), 0, 1)
    plain, waiting = manifests(tmp_path)
    assert plain["format"] == FORMAT
    assert {"operator", "batch_id"} < plain.keys()
    assert waiting["format"] == WITH_OUTBOX
    assert waiting.keys() == {"format", "outbox", "batch"}


def test_an_older_copy_of_the_checkpoint_is_refused(job: Rolling, tmp_path: Path):
    """The file has the rows that the copy would deliver again."""
    engine = job.engine(ROLL)
    batches(engine, 0, 1)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    batches(engine, 2)
    engine.publish(SPARK)
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "copy").rename(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match=r"part-000000000002-00000\.parquet.*older than the output"):
        job.engine(ROLL)
    assert job.read() == job.expected(3)


def test_a_flipped_bit_in_waiting_rows_is_found(job: Rolling, tmp_path: Path):
    batches(job.engine(ROLL), 0, 1)
    (file,) = [path for path in (tmp_path / "checkpoint" / "skypane" / "partials").iterdir() if "-99994-" in path.name]
    content = file.read_bytes()
    file.write_bytes(flipped(content, len(content) * 4))
    with pytest.raises(CheckpointError, match=f"{file.name} is damaged: its checksum"):
        job.engine(ROLL)
    file.unlink()
    with pytest.raises(CheckpointError, match=f"{file.name} is gone"):
        job.engine(ROLL)


def test_a_start_without_the_sink_of_waiting_rows_is_refused(job: Rolling):
    batches(job.engine(ROLL), 0, 1, 2, 3)
    with pytest.raises(
        CheckpointError, match=r"1 row for late wait in the checkpoint .* start the query once as it was"
    ):
        Engine(with_sinks(job.settings(None), late=None), Workers(1, 1))
    job.engine(None)
    assert job.read("late") == job.expected_late(4)


def test_rows_that_begin_to_wait_during_a_start_without_their_sink_are_noticed(
    job: Rolling, monkeypatch: pytest.MonkeyPatch
):
    running = job.engine(ROLL)
    batches(running, 0, 1, 2)
    claim = Ledger.claim

    def goes_on_before(ledger: Ledger, definition: QueryDefinition) -> str:
        batches(running, 3)
        return claim(ledger, definition)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "claim", goes_on_before)
        with pytest.raises(CheckpointError, match="1 row for late wait"):
            Engine(with_sinks(job.settings(ROLL), late=None), Workers(1, 1))
    job.engine(ROLL)
    assert job.read("late") == job.expected_late(4)


def test_rows_of_an_earlier_query_do_not_become_a_file_of_the_next(tmp_path: Path):
    """A query that begins at the offsets of another has its own folder; that of the other lacks rows until it is started."""
    rows, session = in_order(120), Session()
    stream = Stream("skyline", tmp_path, rows, late_from=99, drained=99)
    out = Directory(str(tmp_path / "out"), roll=ROLL)
    settings = replace(stream.setting(random.Random(1), late=False), sinks=Sinks.of(out))

    def started(settings: JobSettings) -> Engine:
        engine = Engine(settings, Workers(1, 1), begin="at_offsets")
        engine.finish_drain(cast("SparkSession", session))
        return engine

    engine = started(settings)
    for number in range(3):
        engine(session.createDataFrame(rows.slice(40 * number, 40)), number)
    assert engine.waits
    plan = Plan(sp.TopK(2, "price"), Windows(SHORT, SHORT), "ts", sp.Watermark("20 seconds"))
    elsewhere = replace(settings, plan=plan, sinks=Sinks.of(tmp_path / "other"))
    with pytest.raises(
        CheckpointError, match=r"rows? for output wait .* in another place than .*out: start the earlier"
    ):
        started(elsewhere)
    assert not (tmp_path / "other").exists()
    started(settings)
    started(elsewhere)
    assert not list((tmp_path / "other").glob("*.parquet"))


def in_order(rows: int) -> pa.Table:
    """Return a row a second, in the order of their times."""
    ids = range(rows)
    columns = {"sensor": ["a"] * rows, "price": [id_ % 7 for id_ in ids], "rating": [id_ % 5 for id_ in ids]}
    times = [START + id_ * SECOND for id_ in ids]
    return pa.table({"id": ids, "ts": times, **columns, "weight": [1] * rows}).cast(SCHEMA)


def test_a_stop_leaves_the_rows_of_a_fenced_driver_to_the_next(job: Rolling, caplog: pytest.LogCaptureFixture):
    fenced = job.engine(ROLL)
    batches(fenced, 0, 1)
    job.engine(ROLL)
    handle_of(fenced)._settle()
    assert "another driver has started" in caplog.text
    assert job.read() == job.expected(2)


def test_a_stop_raises_the_error_of_a_sink_unless_the_query_has_failed(
    job: Rolling, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    engine = job.engine(ROLL)
    batches(engine, 0, 1)
    handle = handle_of(engine)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "empty_outbox", full)
        with pytest.raises(OSError, match="no space left"):
            handle._settle()
        handle._settle(failed=True)
    assert "no space left" in caplog.text
    handle._settle()
    assert job.waiting() == {}


def test_another_kind_of_sink_gets_the_waiting_rows(job: Rolling):
    batches(job.engine(ROLL), 0, 1, 2)
    memory = Memory()
    engine = Engine(with_sinks(job.settings(None), output=memory), Workers(1, 1))
    engine.finish_drain(SPARK)
    batches(engine, 3)
    assert memory.table().to_pydict()["batch"] == [1, 1, 2, 2, 3, 3]


def test_rows_with_other_columns_get_a_separate_file(job: Rolling, monkeypatch: pytest.MonkeyPatch):
    engine = job.engine(ROLL)
    batches(engine, 0, 1, 2)
    other = pa.table({"batch": [3], "row": [0], "more": ["x"]})
    run = type(engine._program).run

    def changed(program: Any, batch: Any, state: Any) -> Any:
        outcome = run(program, batch, state)
        return replace(outcome, answers=BatchRows(other.schema, 1, tables=(other,)))

    monkeypatch.setattr(type(engine._program), "run", changed)
    batches(engine, 3)
    assert job.read() == job.expected(3)
    engine.publish(SPARK)
    store = DocumentStore.at(f"{job.place}/out")
    assert store.parquet_schema("part-000000000002-00000.parquet").names == ["batch", "row"]
    assert store.parquet_schema("part-000000000003-00000.parquet").names == ["batch", "row", "more"]


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_files_of_text_roll_too(format_: Any, tmp_path: Path):
    job = Rolling(str(tmp_path), dict.fromkeys(range(9), 2))
    out = Directory(str(tmp_path / "texts"), format_, roll=ROLL)
    with job.programs(in_files=True):
        engine = Engine(with_sinks(job.settings(ROLL), output=out), Workers(1, 1))
        batches(engine, 0, 1, 2)
        engine.publish(SPARK)
    (text,) = [path.read_text() for path in (tmp_path / "texts").glob(f"part-000000000002-*.{format_}")]
    assert len(text.splitlines()) == 4 + (format_ == "csv")


@given(st.integers(1, 1_000), st.integers(1, 1_000), st.floats(0, 1e-3), st.integers(0, 2_000), st.integers(0, 2_000))
def test_a_file_is_due_by_its_age_its_bytes_or_its_parts(every: int, size: int, seconds: float, has: int, parts: int):
    rule = Roll.of(f"{every} us", size)
    assert rule.is_due(seconds, has, parts) == (seconds * 1e6 >= every or has >= size or parts >= PARTS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"roll": "0 seconds"}, "roll must be longer than 0"),
        ({"roll": 300}, "roll must be a text such as '10 minutes' or a timedelta, got 300"),
        ({"roll": ROLL, "roll_bytes": 0}, "roll_bytes must be a whole number of at least 1, got 0"),
        ({"roll": ROLL, "roll_bytes": True}, "roll_bytes must be a whole number of at least 1, got True"),
        ({"roll_bytes": 5}, "roll_bytes needs roll="),
    ],
)
def test_arguments_that_cannot_be_met_are_refused(arguments: dict[str, Any], says: str):
    with pytest.raises(ConfigError, match=says):
        Directory("out", **arguments)
