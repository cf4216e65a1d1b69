"""The default session: Spark in this process, sized for one machine, without its UI and progress bar.

On a cluster, build the session as usual: every function of skypane uses the session of its DataFrame.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from skypane.runtime.resources import GIB, cores, memory_bytes
from skypane.runtime.spark.machine.class_archive import with_archive
from skypane.runtime.spark.machine.collector import with_collector
from skypane.runtime.spark.machine.interpreter import use_this_interpreter
from skypane.runtime.spark.machine.java import ensure_java
from skypane.runtime.spark.machine.server_address import REMOTE, check_client, check_reachable
from skypane.runtime.spark.machine.session_kind import over_connect
from skypane.types import ConfigError

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_MAY_BE_SECRET: Final = re.compile(
    r"^spark\.hadoop\.|secret|password|token|credential|access\.?key|signature", re.IGNORECASE
)
_LOG4J = Path(__file__).with_name("log4j2.properties")


def session(
    master: str = "local[*]", app: str = "skypane", conf: Mapping[str, str] | None = None, *, remote: str | None = None
) -> SparkSession:
    """Return the running Spark session unchanged, or start one.

    conf     single settings, instead of those of defaults(), for a session that is started here
    remote   address of a server of Spark Connect, such as "sc://host:15002", whose client the session becomes, instead of
             running Spark here; by default the environment variable SPARK_REMOTE, as in PySpark

    Raises JavaError if no Java can run a session here, and ConfigError if the server does not answer.

    >>> spark = sp.session("local[2]", conf={"spark.sql.session.timeZone": "UTC"})
    >>> sp.session() is spark  # the running one
    True
    """
    running = _running()
    if running is not None:
        if remote is not None and not over_connect(running):
            raise ConfigError(
                "remote is the address of a Spark Connect server, but this process runs Spark itself: stop that session, "
                "or use another process"
            )
        return running
    remote = remote or os.environ.get(REMOTE)
    if remote is not None:
        return _connected(remote, conf or {})
    java = ensure_java()
    use_this_interpreter()
    if master.startswith("local"):
        # A local session needs no network: this avoids a warning about the host's name, and open ports.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {**defaults(master), **(conf or {})}
    if master.startswith("local"):
        options = with_collector(settings[JAVA_OPTIONS], threads(master), settings)
        settings[JAVA_OPTIONS] = with_archive(options, java)
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    _start_java({"spark.master": master, "spark.app.name": app, **settings})
    return builder.getOrCreate()


def _start_java(settings: Mapping[str, str]) -> None:
    """Start Java with the settings that its arguments may show to all users of the machine; it gets the others later."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - pyspark-client has neither

    shown = [(name, value) for name, value in settings.items() if not _MAY_BE_SECRET.search(name)]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(shown))  # noqa: SLF001 - the start of PySpark's own


def _connected(remote: str, conf: Mapping[str, str]) -> SparkSession:
    """Return a client's session with those defaults that a session of its own may set: not those of the server."""
    check_client()
    check_reachable(remote)
    builder = SparkSession.builder.remote(remote)
    own = {name: value for name, value in _arrow().items() if name.startswith("spark.sql.")}
    for name, value in {**own, **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def defaults(master: str = "local[*]") -> dict[str, str]:
    """Return the settings with which session() starts a session."""
    return {**_quiet(), **_sized(master), **_arrow(), **_bounded()}


def threads(master: str) -> int:
    """Return the number of tasks that a local `master` runs at once; for others the number of this machine's cores.

    >>> threads("local[3]"), threads("local")
    (3, 1)
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None or match[1] == "*":
        return cores()
    return int(match[1] or 1)


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks to use: the threads of a local session, the shuffle partitions of another one.

    A user's local session has 200 shuffle partitions by default, which would be 200 Python tasks on perhaps two cores.
    """
    master = spark.conf.get("spark.master", "")
    if master is not None and master.startswith("local"):
        return threads(master)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _running() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _quiet() -> dict[str, str]:
    return {
        # A library should start no web server and draw no progress bar; conf can enable both.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Java ignores TMPDIR, which users with a small /tmp set; Spark's shuffle files go to java.io.tmpdir.
        JAVA_OPTIONS: f'"-Dlog4j2.configurationFile={_LOG4J.as_uri()}" "-Djava.io.tmpdir={tempfile.gettempdir()}"',
    }


def _sized(master: str) -> dict[str, str]:
    return {
        # Spark's default, 1 GiB, is too little for a replay; Python workers and the page cache use the rest.
        "spark.driver.memory": f"{_driver_memory() >> 20}m",
        # Spark's default, 200, is for clusters: on one machine every further partition is one more task to start.
        "spark.sql.shuffle.partitions": str(threads(master)),
        # By default Spark creates the folder spark-warehouse in the working directory.
        "spark.sql.warehouse.dir": f"file:{Path(tempfile.gettempdir()) / 'skypane-warehouse'}",
    }


def _arrow() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # More than Spark's default, 10,000: each batch costs a transfer and a call, and larger ones are faster to lift.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # Event times mean the same on the driver, in workers and in files, in any time zone.
        "spark.sql.session.timeZone": "UTC",
        # A crash in compiled code leaves a Python traceback instead of "worker exited unexpectedly".
        "spark.python.worker.faulthandler.enabled": "true",
    }


def _bounded() -> dict[str, str]:
    # The driver keeps a history of jobs even without the UI. A stream runs several jobs per micro-batch without end, so
    # Spark's defaults (1,000 of each, 100,000 tasks) let the heap grow for hours.
    return {
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "50",
    }


def _driver_memory() -> int:
    """Return a quarter of the machine's memory in bytes, at least 1 GiB and at most 8 GiB."""
    return min(max(memory_bytes() // 4, GIB), 8 * GIB)
