"""A cluster on this machine: Spark's own master and worker as processes of their own, from the classes that PySpark ships."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

import pyspark
from tests.checkout import PYTHONPATH
from tests.java import options

from skypane.runtime.spark.machine.java import find_java

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextmanager
def standalone(folder: Path, *, cores: int, memory: str = "2g", workers: int = 1) -> Iterator[str]:
    """Run a master, and workers with so many cores each, if any; executors' logs lie in `folder`. Yield the master's URL."""
    with ExitStack() as stack:
        master = stack.enter_context(
            _daemon("master.Master", ["--port", "0"], r"Starting Spark master at (spark://\S+)")
        )
        for number in range(workers if cores else 0):
            logs = folder if workers == 1 else folder / f"worker-{number}"
            there = ["--cores", str(cores), "--memory", memory, "--work-dir", str(logs), master]
            stack.enter_context(_daemon("worker.Worker", there, "(Successfully registered) with master"))
        yield master


@contextmanager
def _daemon(name: str, arguments: list[str], ready: str) -> Iterator[str]:
    """Run a Spark daemon; yield what its log says by which one knows that it is ready."""
    command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"]
    environment = os.environ | {
        "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_DAEMON_JAVA_OPTS": options(),
        # The machine may be busy with other things, and tests kill executors.
        "SPARK_MASTER_OPTS": "-Dspark.worker.timeout=900 -Dspark.deploy.maxExecutorRetries=-1",
        "PYTHONPATH": PYTHONPATH,  # executors, and their Python, inherit it
    }  # fmt: skip
    with subprocess.Popen([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield _found(process.stderr, ready)
        finally:
            process.terminate()


def _found(log: IO[str], pattern: str) -> str:
    output = []
    for line in log:
        output.append(line)
        if match := re.search(pattern, line):
            Thread(target=_read_on, args=(log,), daemon=True).start()
            return match[1]
    raise AssertionError("".join(output))


def _read_on(log: IO[str]) -> None:
    """Read what nobody needs: a full pipe would stop the daemon."""
    with suppress(ValueError):  # closed when the daemon is ended
        for _ in log:
            pass
