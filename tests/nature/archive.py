"""Java's classes as they are in memory once Spark has run a stream: a driver that maps them starts in half of the time.

Run as a program, it runs two short streams and leaves the archive at its first argument.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.nature.driver import ROOT, Task, conf
from tests.nature.nursery import ENVIRONMENT
from tests.nature.rows import Habits, Steps
from tests.nature.scenarios import LOCAL, SCENARIOS
from tests.runtime.streams import write_batches

from skypane.runtime.spark.machine.session import session

_PATIENCE = 120


def archived(path: Path) -> Path:
    """Make an archive, unless there is one."""
    if not path.exists():
        draft = path.with_suffix(".draft")
        command = [sys.executable, "-m", "tests.nature.archive", str(draft)]
        subprocess.run(command, env=os.environ | ENVIRONMENT, cwd=ROOT, check=True, capture_output=True)
        draft.rename(path)
    return path


def main(path: Path) -> None:
    spark = session(LOCAL, "skypane-nature", conf(LOCAL, f"-XX:ArchiveClassesAtExit={path}"))
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    with tempfile.TemporaryDirectory() as root:
        for name in ("folder", "state"):
            folder, steps = Path(root) / name, Steps(0, Habits())
            write_batches(folder / "in", [steps.step() for _ in range(8)])
            handle = SCENARIOS[name].job(spark, Task(name, folder, 0)).start(trigger="available now")
            handle.await_termination()
            handle.drain()
    java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    java.stdin.close()  # it ends when its parent has, and writes the archive then
    java.wait(_PATIENCE)
    until = time.monotonic() + _PATIENCE
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
