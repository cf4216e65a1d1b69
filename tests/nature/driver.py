"""A driver in a process of its own: starts Spark, says "up", then runs streams side by side as requested, until it is killed.

It is forked from a process that has loaded all there is to load, since a start is what a campaign's time goes into. Its main
thread waits for all of its streams in turn, as a program of a user's that runs several would, and stops all of them at Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final

from pyspark.sql import SparkSession
from tests import stacks
from tests.java import options
from tests.nature import places
from tests.nature.processes import DAEMON
from tests.nature.scenarios import SCENARIOS

import skypane as sp
from skypane import kernels
from skypane.runtime.spark.machine.session import defaults, session
from skypane.types import CheckpointError

UP, BATCH, DONE, FAILED, STOPPED, ASLEEP = "up", "batch", "done", "failed", "stopped", "asleep"
_UNVERIFIED: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""What the verifier would find in Spark's classes others have looked for."""
_LOOK: Final = 0.1
"""Seconds for which the main thread waits for a stream, before it waits for the next one."""


@dataclass(frozen=True)
class Task:
    """A start of a scenario's stream in `folder`; the `last` one goes on to the end of what is there, and drains.

    place  where it stands still in its drain, one of PLACES
    begun  whether a start before this one has begun the drain: this one repeats it before anything else
    """

    scenario: str
    folder: Path
    seed: int
    broker: str = ""
    last: bool = False
    place: str = ""
    begun: bool = False

    @property
    def stream(self) -> str:
        return self.folder.name


@dataclass(frozen=True)
class Stand:
    """Have a stream that runs stand still at a place, when it comes there."""

    folder: Path
    place: str


@dataclass(frozen=True)
class Wake:
    """Have all streams that stand still go on."""


def live(connection: Connection, master: str, log: Path) -> None:
    """Be a driver that runs what a connection requests."""
    os.setsid()
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    stacks.register()
    spark = session(master, "skypane-nature", conf(master))
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    kernels.warm()
    line = Line(connection)
    places.install(lambda folder: line.say(ASLEEP, Path(folder).name))
    line.say(UP, "")
    Streams(spark, line).serve()


class Line:
    """A connection on which several threads may say something."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, Lock()

    def say(self, kind: str, stream: str, value: object = None) -> None:
        with self._lock:
            self._connection.send((kind, stream, value))

    def requested(self, seconds: float) -> Any:
        """Return what is requested within so many seconds; None if that is nothing."""
        return self._connection.recv() if self._connection.poll(seconds) else None


class Interrupts:
    """Ctrl-C, which a driver raises only while it runs a stream: else it would end the driver, or cut a request in two."""

    def __init__(self) -> None:
        self._usual = signal.getsignal(signal.SIGINT)
        self._came = False
        signal.signal(signal.SIGINT, self._note)

    def raised(self) -> AbstractContextManager[None]:
        """Handle interrupts as a program does in the context; raise one that has come before it."""
        return self._raised() if current_thread() is main_thread() else nullcontext()

    @contextmanager
    def _raised(self) -> Iterator[None]:
        signal.signal(signal.SIGINT, self._usual)
        try:
            if self._came:
                self._came = False
                raise KeyboardInterrupt
            yield
        finally:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._came = True


class Streams:
    """The streams that a driver runs."""

    def __init__(self, spark: SparkSession, line: Line) -> None:
        self._spark, self._line = spark, line
        self._interrupts = Interrupts()
        self._running: dict[str, tuple[Task, sp.StreamHandle]] = {}
        self._stopping: set[str] = set()

    def serve(self) -> None:
        """Do what is requested, and wait for what runs, over and over."""
        while True:
            while (request := self._line.requested(0 if self._running else _LOOK)) is not None:
                match request:
                    case Stand(folder, place):
                        places.stand(folder, place)
                    case Wake():
                        places.wake()
                    case Task() if request.begun:  # may stand still while it starts
                        Thread(target=self._begin, args=(request,), daemon=True).start()
                    case Task():
                        self._begin(request)
            for task, handle in [*self._running.values()]:
                self._look(task, handle)

    def _begin(self, task: Task) -> None:
        during = "while the job was made: "
        if task.begun:
            places.stand(task.folder, task.place)
        try:
            with self._interrupts.raised():
                job = SCENARIOS[task.scenario].job(self._spark, task)
                during = ""
                handle = job.start(
                    trigger="available now" if task.last else None,
                    on_batch=lambda batch: self._committed(task, batch),
                )
        except BaseException as error:  # noqa: BLE001 - whatever it is, the campaign judges it
            self._fail(task, error, during)
            if isinstance(error, KeyboardInterrupt):
                self._stop_all()
        else:
            self._running[task.stream] = task, handle

    def _committed(self, task: Task, batch: sp.BatchMetrics) -> None:
        """Report a batch that the ledger has, and Spark's log does not have yet."""
        places.reached(str(task.folder), places.BEFORE_SPARK)
        self._line.say(BATCH, task.stream, (batch.batch_id, batch.rows, batch.punctuation))

    def _look(self, task: Task, handle: sp.StreamHandle) -> None:
        """Wait for a stream for a moment; report how it ended, if it has."""
        try:
            with self._interrupts.raised():
                ended = handle.await_termination(_LOOK)
        except KeyboardInterrupt:
            self._stop_all()
            return
        except BaseException as error:  # noqa: BLE001 - as above
            del self._running[task.stream]
            self._fail(task, error)
            return
        if handle.interrupted and task.stream not in self._stopping:
            self._stop_all()
        if not ended:
            return
        del self._running[task.stream]
        if task.stream in self._stopping:
            self._stopping.discard(task.stream)
            self._line.say(STOPPED, task.stream)
        elif task.last:
            Thread(target=self._drain, args=(task, handle), daemon=True).start()
        else:
            self._line.say(DONE, task.stream)

    def _stop_all(self) -> None:
        """Stop all streams after Ctrl-C, which has stopped one of them, or none; _look() reports how each ends."""
        for task, handle in [*self._running.values()]:
            self._stopping.add(task.stream)
            if not handle.interrupted:
                try:
                    handle.stop()
                except BaseException:  # noqa: BLE001 - await_termination() raises it, too
                    sys.excepthook(*sys.exc_info())

    def _drain(self, task: Task, handle: sp.StreamHandle) -> None:
        try:
            if task.place and not task.begun:
                places.stand(task.folder, task.place)
            handle.drain()
        except BaseException as error:  # noqa: BLE001 - as above
            self._fail(task, error)
        else:
            self._line.say(DONE, task.stream)

    def _fail(self, task: Task, error: BaseException, during: str = "") -> None:
        sys.excepthook(type(error), error, error.__traceback__)
        self._stopping.discard(task.stream)
        self._line.say(FAILED, task.stream, (_is_refusal(error), f"{during}{type(error).__name__}: {error}"))


def conf(master: str) -> dict[str, str]:
    """Return settings of Spark that let processes be killed often: a small heap, a quick start, any number of retries."""
    return {
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": f"{defaults(master)['spark.driver.extraJavaOptions']} {_UNVERIFIED}",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": f"{options()} {_UNVERIFIED}",
        "spark.executor.cores": "1",
        "spark.python.daemon.module": DAEMON,
        # Else a stream has two parents of workers, which differ in this alone.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.task.maxFailures": "1000",
        "spark.stage.maxConsecutiveAttempts": "1000",
        "spark.deploy.maxExecutorRetries": "-1",
    }


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether it is, or was raised from, a refusal of the checkpoint."""
    return error is not None and (isinstance(error, CheckpointError) or _is_refusal(error.__cause__))
