"""A driver in a process of its own: starts Spark, says "up", then runs streams as requested, until it is killed.

It is forked from a process that has loaded all there is to load, since a start is what a campaign's time goes into.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tests import stacks
from tests.java import options
from tests.nature.processes import DAEMON
from tests.nature.scenarios import SCENARIOS

from skypane import kernels
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.machine.session import defaults, session
from skypane.types import CheckpointError

UP, BATCH, DONE, FAILED, STOPPED = "up", "batch", "done", "failed", "stopped"
_UNVERIFIED: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""What the verifier would find in Spark's classes others have looked for."""


@dataclass(frozen=True)
class Task:
    """A start of a scenario's stream in `folder`; the `last` one goes on to the end of what is there, and drains."""

    scenario: str
    folder: Path
    seed: int
    broker: str = ""
    last: bool = False


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
    interrupts = Interrupts()
    connection.send((UP, None))
    while (task := connection.recv()) is not None:
        during = "while the job was made: "
        try:
            with interrupts.raised():
                job = SCENARIOS[task.scenario].job(spark, task)
                during = ""
                ended = _run(job, task, connection)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the campaign judges it
            interrupts.hold()
            sys.excepthook(*sys.exc_info())
            ended = FAILED, (_is_refusal(error), f"{during}{type(error).__name__}: {error}")
        connection.send(ended)


class Interrupts:
    """Ctrl-C, which a driver raises only while it runs a stream: else it would end the driver, or cut a request in two."""

    def __init__(self) -> None:
        self._usual = signal.getsignal(signal.SIGINT)
        self._came = False
        self.hold()

    def hold(self) -> None:
        """Keep an interrupt for the next stream from now on."""
        signal.signal(signal.SIGINT, self._note)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Handle interrupts as a program does in the context; raise one that has come before it."""
        signal.signal(signal.SIGINT, self._usual)
        if self._came:
            self._came = False
            raise KeyboardInterrupt
        try:
            yield
        finally:
            self.hold()

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._came = True


def conf(master: str) -> dict[str, str]:
    """Return settings of Spark that let processes be killed often: a small heap, a quick start, any number of retries."""
    return {
        "spark.driver.memory": "512m",
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


def _run(job: Job, task: Task, connection: Connection) -> tuple[str, Any]:
    handle = job.start(
        trigger="available now" if task.last else None,
        on_batch=lambda metrics: connection.send((BATCH, (metrics.batch_id, metrics.rows))),
    )
    handle.await_termination()
    if task.last and not handle.interrupted:
        handle.drain()
    return (STOPPED, None) if handle.interrupted else (DONE, None)


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether it is, or was raised from, a refusal of the checkpoint."""
    return error is not None and (isinstance(error, CheckpointError) or _is_refusal(error.__cause__))
