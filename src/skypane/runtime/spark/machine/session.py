"""The embedded default: a Spark session in this process, sized for one machine and quiet.

On a cluster, build the session as you always do: every function of skypane takes the session of its DataFrame.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from skypane.runtime.resources import GIB, cores, memory_bytes
from skypane.runtime.spark.machine.interpreter import use_this_interpreter
from skypane.runtime.spark.machine.java import ensure_java

_LOG4J = Path(__file__).with_name("log4j2.properties")


def session(master: str = "local[*]", app: str = "skypane", conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running Spark session if there is one, as it is; else start one.

    `conf` overrides single settings of `defaults` for a session that is started here. Raises JavaError if there is no
    Java to start it with.
    """
    running = _running()
    if running is not None:
        return running
    ensure_java()
    use_this_interpreter()
    if master.startswith("local"):
        # One machine talks to itself: no warning about the host's name, no port open to the network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in {**defaults(master), **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def defaults(master: str = "local[*]") -> dict[str, str]:
    """Return the settings that a session of ours starts with."""
    return {**_quiet(), **_sized(master), **_arrow(), **_bounded()}


def threads(master: str) -> int:
    """Return how many tasks `master` runs at once if it is local, else this machine's cores.

    >>> threads("local[3]"), threads("local")
    (3, 1)
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None or match[1] == "*":
        return cores()
    return int(match[1] or 1)


def parallelism(spark: SparkSession) -> int:
    """Return into how many tasks work should be cut: the cores of a local session, the shuffle partitions of another.

    A user's own local session has 200 shuffle partitions unless told otherwise: as many Python tasks on two cores.
    """
    master = spark.conf.get("spark.master", "")
    if master is not None and master.startswith("local"):
        return threads(master)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def over_connect(spark: SparkSession) -> bool:
    """Return whether `spark` only speaks to a server (Spark Connect), in which the driver is."""
    try:
        return spark.sparkContext is None
    except PySparkException:
        return True


def _running() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _quiet() -> dict[str, str]:
    return {
        # Nobody asked for a web server or a progress bar; both can be switched on by conf.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Java does not read TMPDIR, which is where a user with a small /tmp says so; Spark's shuffle files follow it.
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={_LOG4J.as_uri()}" "-Djava.io.tmpdir={tempfile.gettempdir()}"',
    }


def _sized(master: str) -> dict[str, str]:
    return {
        # Spark's default, 1 GiB, is less than a replay needs; the rest is for Python workers and the page cache.
        "spark.driver.memory": f"{_driver_memory() >> 20}m",
        # Spark's default, 200, is for clusters: on one machine each further partition is a further task to start.
        "spark.sql.shuffle.partitions": str(threads(master)),
        # Otherwise a folder of this name turns up wherever the process was started.
        "spark.sql.warehouse.dir": f"file:{Path(tempfile.gettempdir()) / 'skypane-warehouse'}",
    }


def _arrow() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark's default, 10,000: each batch costs a crossing and a call, and fewer, larger ones are faster to lift.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # Event times then mean the same on the driver, in workers and in files, wherever the machine stands.
        "spark.sql.session.timeZone": "UTC",
        # A crash in compiled code then leaves a Python traceback instead of "worker exited unexpectedly".
        "spark.python.worker.faulthandler.enabled": "true",
    }


def _bounded() -> dict[str, str]:
    # The driver remembers this much of what has run, UI or not. A stream runs several jobs per micro-batch, for ever:
    # Spark's defaults (1,000 of each, 100,000 tasks) make its heap grow for the first hours.
    return {
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "50",
    }


def _driver_memory() -> int:
    """A quarter of the machine, but not less than 1 GiB nor more than 8."""
    return min(max(memory_bytes() // 4, GIB), 8 * GIB)
