"""Streams that are handled roughly: stopped at any moment, with sinks and listeners that raise, several at once."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.driver import Task, job_of
from tests.runtime.scenarios import lines_of
from tests.runtime.streams import (
    SECOND,
    expected,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.types import Length
from skypane.windows import Windows

YEAR = 365 * 86_400 * SECOND
BATCHES = 8


class TroubleError(Exception):
    """What sinks and listeners raise here."""


@dataclass
class Rough:
    """A sink, a listener and a hand on the stop: which of them makes trouble in a batch is drawn."""

    rng: random.Random
    share: float = 0.5
    taken: dict[int, pa.Table] = field(default_factory=dict)
    handle: sp.StreamHandle | None = None
    started: threading.Event = field(default_factory=threading.Event)

    def take(self, rows: DataFrame, batch_id: int) -> None:
        self._perhaps("before", self.fail)
        self.taken[batch_id] = rows.toArrow()
        self._perhaps("after", self.fail, self.stop, self.stop_at_once)

    def listen(self, _: sp.BatchMetrics) -> None:
        self._perhaps("told", self.fail, self.stop, self.stop_at_once)

    def _perhaps(self, where: str, *troubles: Callable[[str], None]) -> None:
        assert self.started.wait(60)
        if self.rng.random() < self.share:
            self.rng.choice(troubles)(where)

    def fail(self, where: str) -> None:
        raise TroubleError(where)

    def stop(self, _: str) -> None:
        assert self.handle is not None
        self.handle.stop()

    def stop_at_once(self, _: str) -> None:
        assert self.handle is not None
        threading.Thread(target=self.handle.stop, kwargs={"timeout": 0.0}).start()

    def start(self, job: sp.Job) -> None:
        """Run the job until it ends, in whatever way."""
        self.started.clear()
        self.handle = job.start(on_batch=self.listen, trigger="available now")
        self.started.set()
        if self.rng.random() < self.share:
            self.handle.stop(timeout=self.rng.random())
        try:
            assert self.handle.await_termination(120)
        except sp.SkypaneError as error:
            assert isinstance(error.__cause__, TroubleError)  # noqa: PT017  # it may also end without an error


@pytest.mark.parametrize(("seed", "starts"), [(1, 3), *(pytest.param(s, 25, marks=pytest.mark.slow) for s in (2, 3))])
def test_starts_stops_and_troubles_at_random_leave_the_answers_as_they_are(
    seed: int, starts: int, spark: SparkSession, tmp_path: Path
):
    batches, task = late_rows(seed, batches=BATCHES), Task(str(tmp_path), late=False)
    write_batches(tmp_path / "in", batches)
    rough = Rough(random.Random(seed), share=0.2)
    job = job_of(spark, task, output=rough.take)
    for _ in range(starts):
        rough.start(job)
    rough.share = 0.0
    finish(job)
    taken = pa.concat_tables(rough.taken[batch_id] for batch_id in sorted(rough.taken))
    assert sorted(rough.taken) == list(range(BATCHES))
    assert windows_of(taken) == expected(task.plan, batches)


def test_queries_in_one_session_do_not_disturb_each_other(spark: SparkSession, tmp_path: Path):
    """Three run at once; one of them fails in its third batch."""
    batches = late_rows(5)
    write_batches(tmp_path / "in", batches)
    task = Task(str(tmp_path), late=False)
    slides = (10 * SECOND, 25 * SECOND, 50 * SECOND)

    def failing(_: DataFrame, batch_id: int) -> None:
        if batch_id == 2:
            raise TroubleError

    outputs: list[Any] = [tmp_path / "out0", tmp_path / "out1", failing]
    jobs = [
        job_of(spark, task, slide=Length(slide), checkpoint=tmp_path / f"checkpoint{number}", output=outputs[number])
        for number, slide in enumerate(slides)
    ]
    handles = [job.start(trigger="available now") for job in jobs]
    for handle in handles[:2]:
        assert handle.await_termination(120)
    with pytest.raises(sp.SkypaneError, match=r"the query has failed: TroubleError$"):
        handles[2].await_termination(120)
    for number in range(2):
        plan = replace(task.plan, windows=Windows(50 * SECOND, slides[number]))
        assert windows_of(parquet_rows(tmp_path / f"out{number}")) == expected(plan, batches)


def test_a_second_start_in_the_same_session_takes_the_query_over(spark: SparkSession, tmp_path: Path):
    batches, task = late_rows(5), Task(str(tmp_path), late=False)
    write_batches(tmp_path / "in", batches[:3])
    committed = threading.Event()
    job = job_of(spark, task)
    first = job.start(on_batch=lambda batch: committed.set() if batch.batch_id == 2 else None)
    assert committed.wait(120)
    write_batches(tmp_path / "in", batches[3:], first=3)
    finish(job)
    first.stop()
    assert not first.status["active"]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, batches)


def test_a_stream_that_jumps_a_year_as_a_whole_is_followed(spark: SparkSession, tmp_path: Path):
    batches = late_rows(5)
    jumped = late_rows(6, batches=6, start=YEAR)
    task = Task(str(tmp_path))
    write_batches(tmp_path / "in", [*batches, *jumped])
    metrics = finish(job_of(spark, task))
    answered = windows_of(parquet_rows(tmp_path / "out"))
    assert answered == expected(task.plan, [*batches, *jumped])
    assert {start.year for start, _ in answered} >= {1970, 1971}
    assert metrics[-1].quarantined == {}, "the new time is believed"
    assert metrics[-1].late_rows < batches[0].num_rows / 2


MANY = 254


@pytest.mark.slow
def test_as_many_criteria_as_can_be_compared(spark: SparkSession, tmp_path: Path):
    rng = random.Random(3)
    batches = [
        pa.table(
            {"ts": pa.array([(20 * number + row % 20) * SECOND for row in range(30)], pa.timestamp("us", "UTC"))}
            | {f"c{column}": pa.array([float(rng.random() < 0.995) for _ in range(30)]) for column in range(MANY)}
        )
        for number in range(3)
    ]
    write_batches(tmp_path / "in", batches)
    query = Skyline(", ".join(f"c{column} MIN" for column in range(MANY)))
    shape: dict[str, Any] = {"time": "ts", "window": "20 seconds"}
    plan = Plan(query, Windows(20 * SECOND, 20 * SECOND), "ts", sp.Watermark("20 seconds"))
    rows = read_batches(spark, tmp_path / "in", batches[0].schema)
    memory = sp.Memory()
    finish(sp.stream(rows, query, progress=plan.progress, checkpoint=tmp_path / "checkpoint", output=memory, **shape))
    assert windows_of(memory.table()) == expected(plan, batches)
    assert sp.ask(spark.read.parquet(str(tmp_path / "in")), query, **shape).count() > 0


STOPPED = """
import sys, threading
import skypane as sp
from skypane.runtime.spark.machine.session import session
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import finish

task, reported = Task(sys.argv[1], late=False), threading.Event()
spark = session("local[1]", "first", {"spark.driver.memory": "512m"})
handle = job_of(spark, task).start(on_batch=lambda batch: reported.set() if batch.batch_id == 2 else None)
assert reported.wait(300)
spark.stop()
try:
    handle.await_termination(120)
except sp.SkypaneError as error:
    assert len(str(error).splitlines()) == 1, error
assert not handle.status["active"]
handle.stop()
finish(job_of(session("local[1]", "second", {}), task))
"""


@pytest.mark.slow
def test_a_session_that_is_stopped_under_a_query_leaves_a_checkpoint_to_continue_from(tmp_path: Path):
    batches = late_rows(5, batches=12)
    write_batches(tmp_path / "in", batches)
    lines_of("-c", STOPPED, tmp_path, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH})
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(Task(str(tmp_path)).plan, batches)
