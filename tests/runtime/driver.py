"""Run by test_recovery as a process of its own: a driver that can be killed.

It starts Spark on the master that is its argument, prints "ready", and waits for a line of JSON, a Task. Then it runs the
task's stream, prints a line at each step that matters ("sink", "commit", "batch") and one of ENDS at its end, and waits for
the next task, until there is none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any, NoReturn, Self

import pyarrow as pa
from pyspark.sql import SparkSession
from tests import stacks
from tests.checkout import PYTHONPATH, ROOT
from tests.java import inside_java, options
from tests.runtime.streams import SECOND, AnySession, CountBySensor, late_rows, read_batches

import skypane as sp
from skypane import kernels
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.progress.far_future import PATIENCE
from skypane.runtime.spark.document_store import DRAFT, DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.machine.session import defaults, session
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.types import Length
from skypane.windows import Windows

SCHEMA = late_rows(0, batches=1).pop().schema
WINDOWS = Windows(50 * SECOND, 20 * SECOND)
LONG_WINDOWS = Windows(50 * SECOND, 2 * SECOND)
SKYLINE = Skyline(sp.low("price") * sp.high("rating"), ("sensor",))

PATIENT = 500
"""Seconds until a driver that is to die, and does not, is killed."""


@dataclass(frozen=True)
class Task:
    """What a driver has to do in `folder`, whose `in` holds the batches.

    crash     where it dies, one of CRASHES, or sleeps, one of SLEEPS; or None
    deadly    count rows by sensor, and kill the first Python worker that lifts
    java      kill Java after the first batch, and try whatever can be done with a query then
    drain     drain in the end, and crash then, not before
    unique    let a Spark operator, with a state of its own, drop rows that it has seen before
    late      whether late rows go to a sink
    patience  after how many rows of others those that are held are abandoned
    amend     for how many microseconds late rows amend answers; many are late then
    early     after how many microseconds open windows are answered again; versions are changes then
    share     the share of windows that may be amended, by which the punctuation is chosen then
    stays     answers are stays, in long windows
    """

    folder: str
    crash: str | None = None
    deadly: bool = False
    java: bool = False
    drain: bool = False
    unique: bool = False
    late: bool = True
    patience: int = PATIENCE
    amend: int = 0
    early: int = 0
    share: float | None = None
    stays: bool = False

    @property
    def windows(self) -> Windows:
        return LONG_WINDOWS if self.stays else WINDOWS

    @property
    def query(self) -> Query:
        return Deadly(marker=f"{self.folder}/killed") if self.deadly else SKYLINE

    @property
    def plan(self) -> Plan:
        plan = Plan(self.query, self.windows, "ts", sp.KSlack(patience=self.patience))
        plan = replace(plan, answers="stays") if self.stays else plan
        if self.amend:
            policy = sp.Watermark("1 second") if self.share is None else sp.AqKSlack(max_amended=self.share, reserve=1)
            plan = replace(plan, progress=policy, amend=AmendRule(self.amend))
        return replace(plan, early=self.early) if self.early else plan

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def job_of(spark: AnySession, task: Task, query: Query | None = None, **options: Any) -> sp.Job:
    """Return the job of a task; `query` and `options` go before its own."""
    folder = Path(task.folder)
    own: dict[str, Any] = {
        "time": "ts",
        "window": Length(task.windows.length),
        "slide": Length(task.windows.slide),
        "answers": "stays" if task.stays else "windows",
        "progress": task.plan.progress,
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
        "late": folder / "late" if task.late else None,
    }
    if task.amend:
        own["late"] = sp.Amend(Length(task.amend), then=own["late"], changes=task.early > 0)
    if task.early:
        own["early"] = Length(task.early)
    rows = read_batches(spark, folder / "in", SCHEMA)
    if task.unique:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        rows = rows.withWatermark("ts", "1 day").dropDuplicatesWithinWatermark(["id"])
    return sp.stream(rows, query or task.query, **own | options)


@dataclass(frozen=True)
class Deadly(CountBySensor):
    """Counts, and kills the worker process it is lifted in: the first one only, which leaves a file for the others."""

    marker: str = ""

    def lift(self, rows: pa.Table) -> pa.Table:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return super().lift(rows)
        return die()


def die() -> NoReturn:
    """End this process here and now, as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives SIGKILL")


def run_until(last: int, job: sp.Job) -> None:
    """Run a job, and die after batch `last`."""
    stacks.register()
    handle = job.start(trigger="available now", on_batch=lambda metrics: die() if metrics.batch_id == last else None)
    handle.await_termination()


def assert_killed(module: str, folder: Path) -> None:
    """Run a driver, a module of this package, over `folder` in a process of its own, to its death."""
    log = folder / f"{module}.log"
    environment = {
        "PYTHONPATH": PYTHONPATH,
        "SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {stacks.TO_STDERR}",
    }
    command = [sys.executable, "-m", module, str(folder)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            process.communicate(timeout=PATIENT)  # until its Java has ended, too
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a driver does not end: {stacks.dumped(process.pid, log)}") from None
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL, log.read_text()[-3_000:]


def say(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True)
class Telling(Directory):
    """The output directory, telling when its turn comes."""

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        say("sink")
        super().write(spark, answers, batch_id)


_REPLACED: list[tuple[type | ModuleType, str, Callable[..., Any]]] = []
"""Methods whose place others have taken, the last one last."""


def replace_method(owner: type | ModuleType, name: str, instead: Callable[..., Any]) -> None:
    """Put `instead`, called with the original first, in the place of a method, or of a function of a module."""
    original = getattr(owner, name)
    _REPLACED.append((owner, name, original))
    setattr(owner, name, lambda *args, **named: instead(original, *args, **named))


def _tell_commits() -> None:
    def commit(original: Callable[..., None], *args: Any) -> None:
        say("commit")
        original(*args)

    replace_method(Ledger, "commit", commit)


def _before_the_sink() -> None:
    replace_method(Directory, "write", lambda _original, *_: die())


def _before_a_file_moves_into_the_output() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        if target.root.endswith("/out") and to.startswith("part-"):
            die()
        original(store, name, target, to)

    replace_method(DocumentStore, "move", move)


def _after_the_sink() -> None:
    def write(original: Callable[..., None], sink: Directory, *args: Any) -> None:
        original(sink, *args)
        if sink.path.endswith("/out"):
            die()

    replace_method(Directory, "write", write)


def _before_the_commit() -> None:
    replace_method(Ledger, "commit", lambda _original, *_: die())


def _in_the_middle_of_a_manifest() -> None:
    def open_output(original: Callable[..., pa.NativeFile], store: DocumentStore, name: str) -> Any:
        stream = original(store, name)
        return _Dying(stream) if name.startswith(f"{DRAFT}0") else stream

    replace_method(DocumentStore, "open_output", open_output)


class _Dying:
    """A file that takes half of what is written, and no more."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, data: bytes) -> None:
        self._stream.write(data[: len(data) // 2])
        self._stream.flush()
        die()


def _before_a_manifest_gets_its_name() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        if target.root.endswith("/ledger"):
            die()
        original(store, name, target, to)

    replace_method(DocumentStore, "move", move)


def _asleep_before_a_file_moves_into_the_output() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        if target.root.endswith("/out") and to.startswith("part-"):
            sleep()
        original(store, name, target, to)

    replace_method(DocumentStore, "move", move)


def _asleep_before_the_commit() -> None:
    def commit(original: Callable[..., None], *args: Any) -> None:
        sleep()
        original(*args)

    replace_method(Ledger, "commit", commit)


def sleep() -> None:
    """Wait until somebody writes a line."""
    say("asleep")
    sys.stdin.readline()


def _after_the_commit() -> None:
    def commit(original: Callable[..., None], *args: Any) -> None:
        original(*args)
        die()

    replace_method(Ledger, "commit", commit)


def _while_partials_are_removed() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        original(store, name, target, to)
        if store.root.endswith("/partials"):
            die()

    replace_method(DocumentStore, "move", move)


ENDS = ("done", "interrupted", "failed")

CRASHES: dict[str, Callable[[], None]] = {
    "before the sink": _before_the_sink,
    "before a file moves into the output": _before_a_file_moves_into_the_output,
    "after the sink": _after_the_sink,
    "before the commit": _before_the_commit,
    "in the middle of a manifest": _in_the_middle_of_a_manifest,
    "before a manifest gets its name": _before_a_manifest_gets_its_name,
    "after the commit": _after_the_commit,
    "while partials are removed": _while_partials_are_removed,
    "before Spark commits": lambda: None,  # by the listener, which is called between the two commits
}

SLEEPS: dict[str, Callable[[], None]] = {
    "asleep before a file moves into the output": _asleep_before_a_file_moves_into_the_output,
    "asleep before the commit": _asleep_before_the_commit,
}


def _listener(task: Task, java: int, started: Event) -> Callable[[sp.BatchMetrics], None]:
    """Return what is called with each batch; `java` is the number of that process, `started` is set when start() is through."""

    def listen(_: sp.BatchMetrics) -> None:
        if task.crash == "before Spark commits" and not task.drain:
            die()
        if task.java:
            started.wait()
            os.kill(java, signal.SIGKILL)
        say("batch")

    return listen


def _try_all(job: sp.Job, handle: sp.StreamHandle) -> None:
    """Try whatever can be done with a query, and say how each fails."""
    tries: dict[str, Callable[[], object]] = {
        "wait": handle.await_termination,
        "look": lambda: handle.status,
        "stop": handle.stop,
        "drain": handle.drain,
        "start": job.start,
    }
    for name, attempt in tries.items():
        try:
            attempt()
        except sp.SkypaneError as error:
            say(f"{name}: {error}")
    say(repr(handle))


def _warm(spark: SparkSession) -> None:
    """Start what the first micro-batch would have to wait for."""
    kernels.warm()
    spark.range(2).mapInArrow(_same, "id long").collect()


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    stacks.register()
    # What the verifier would find in Spark's classes others have looked for.
    unverified = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    java = f"{defaults()['spark.driver.extraJavaOptions']} {unverified} {stacks.TO_STDERR}"
    conf = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": f"{options()} {unverified}",
        "spark.python.daemon.module": "tests.runtime.parent_of_workers",
        # Else a stream has two parents of Python workers, which differ in this alone.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        **inside_java(),
    }
    spark = session(sys.argv[1], "skypane-recovery", conf)
    _warm(spark)
    say("ready")
    lasting = len(_REPLACED)
    while line := sys.stdin.readline():
        say(_run(spark, Task(**json.loads(line))))
        while len(_REPLACED) > lasting:
            setattr(*_REPLACED.pop())


def _run(spark: SparkSession, task: Task) -> str:
    """Run the stream of a task; return how it ended."""
    job = job_of(spark, task, output=Telling(f"{task.folder}/out"))
    _tell_commits()
    crash = (CRASHES | SLEEPS)[task.crash] if task.crash is not None else lambda: None
    if not task.drain:
        crash()
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    started = Event()
    handle = job.start(trigger="available now", on_batch=_listener(task, java, started))
    started.set()
    if task.java:
        _try_all(job, handle)
        return "failed"
    try:
        handle.await_termination()
    except sp.SkypaneError as error:
        print(error, file=sys.stderr, flush=True)
        return "failed"
    if task.drain:
        crash()
        handle.drain()
    return "interrupted" if handle.interrupted else "done"


if __name__ == "__main__":
    # What workers unpickle must be found under the name of its module, not under that of the script.
    from tests.runtime import driver

    driver.main()
