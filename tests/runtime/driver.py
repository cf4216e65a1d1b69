"""The stream that tests of starts and ends run, in a folder, and how a process runs it to its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tests import stacks
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.streams import SECOND, AnySession, late_rows, stream_job

import skypane as sp
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.types import Length
from skypane.windows import Windows

SCHEMA = late_rows(0, batches=1).pop().schema
WINDOWS = Windows(50 * SECOND, 20 * SECOND)
SKYLINE = Skyline(sp.low("price") * sp.high("rating"), ("sensor",))

PATIENT = 500
"""Seconds until a driver that is to die, and does not, is killed."""


@dataclass(frozen=True)
class Task:
    """A stream in `folder`, whose `in` holds the batches; `late`: whether late rows go to a sink."""

    folder: str
    late: bool = True

    @property
    def plan(self) -> Plan:
        return Plan(SKYLINE, WINDOWS, "ts", sp.Watermark("20 seconds"))


def job_of(spark: AnySession, task: Task, query: Query | None = None, **options: Any) -> sp.Job:
    """Return the job of a task; `query` and `options` go before its own."""
    folder = Path(task.folder)
    own: dict[str, Any] = {
        "window": Length(WINDOWS.length),
        "slide": Length(WINDOWS.slide),
        "progress": task.plan.progress,
        "late": folder / "late" if task.late else None,
    }
    return stream_job(spark, folder, query or SKYLINE, SCHEMA, **own | options)


def answered_by_workers(job: sp.Job) -> sp.Job:
    """Return the job with costs by which workers answer its windows, into several files."""
    costs = replace(job.settings.costs, job=0.0, window=1.0, shard_per_row=0.0)
    return replace(job, settings=replace(job.settings, costs=costs))


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


def replace_method(owner: type | ModuleType, name: str, instead: Callable[..., Any]) -> None:
    """Put `instead`, called with the original first, in the place of a method, or of a function of a module, for good."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **named: instead(original, *args, **named))
