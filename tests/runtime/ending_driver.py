"""Run by test_recovery as a process of its own: a driver that waits for Ctrl-C, and whose Java dies when it has gone on.

It prints a line with each batch, then how the query has ended, and waits for a line; then it runs the query again, kills Java
after a batch, tries whatever can be done with a query, and prints how each fails.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

from tests import stacks
from tests.java import inside_java
from tests.runtime.driver import Task, job_of

import skypane as sp
from skypane.runtime.spark.machine.session import session


def say(line: str) -> None:
    print(line, flush=True)


def main(folder: Path) -> None:
    stacks.register()
    spark = session("local[1]", "skypane-ending", {"spark.driver.memory": "512m", **inside_java()})
    job = job_of(spark, Task(str(folder)))
    handle = job.start(trigger="available now", on_batch=lambda _: say("batch"))
    handle.await_termination()
    say("interrupted" if handle.interrupted else "done")
    sys.stdin.readline()
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    started = Event()

    def kill_java(_: sp.BatchMetrics) -> None:
        started.wait()
        os.kill(java, signal.SIGKILL)

    handle = job.start(trigger="available now", on_batch=kill_java)
    started.set()
    _try_all(job, handle)


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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
