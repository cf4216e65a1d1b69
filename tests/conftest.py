"""Hypothesis profiles, one Spark session for each process of the run, and how many processes there are."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from tests.checkout import ROOT
from tests.failed import Failed
from tests.goals import Goals
from tests.java import end, inside_java, options
from tests.leftovers import CACHE, Leftovers, temporary
from tests.processes import Sharing, measured, turn, with_java, workers
from tests.spent import Spent
from tests.table import By, Limits, Table

from skypane.runtime.resources import cores, memory_bytes
from skypane.runtime.spark.machine.session import session as spark_session
from skypane.testing import Session

if TYPE_CHECKING:
    from tests.servers.kafka import Broker
    from tests.servers.postgresql import Server

# HYPOTHESIS_PROFILE names another. A first call compiles kernels, which no deadline foresees.
settings.register_profile("dev", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
# Derandomised: a red build is red again when it is run again.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("slow", settings.get_profile("dev"), max_examples=25, print_blob=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# What a developer has calibrated must not decide anything here.
TEMPORARY = temporary()
os.environ["SKYPANE_CACHE"] = str(TEMPORARY / CACHE)

# Every Java that Spark starts in a test lives for minutes: what its second compiler makes of Spark in them takes as much CPU
# time as all else that Java does, and is used for too short a time to save it; to read Spark's classes from an archive takes a
# half of the CPU time of a start. Programs that tests start inherit this.
os.environ["SPARK_SUBMIT_OPTS"] = options()


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two threads, started through the same API as a user's; warm if tests have limits."""
    # Functions of test modules are pickled by name: workers must find those modules too.
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{inherited}" if inherited else str(ROOT)
    own = {"spark.driver.memory": "2g", "spark.python.daemon.module": "tests.worker_daemon", **inside_java()}
    started = spark_session("local[2]", "skypane-tests", own)
    if request.config.getoption("limits"):
        _warm(started, tmp_path_factory.mktemp("warm"))
    yield started
    end(started)


def _warm(spark: SparkSession, folder: Path) -> None:
    """Run a small stream: what Java, its workers and kernels take at first would count to the test that is first by chance."""
    from tests.runtime.driver import Task, job_of  # noqa: PLC0415 - few runs need them
    from tests.runtime.streams import drained, late_rows, write_batches  # noqa: PLC0415

    write_batches(folder / "in", late_rows(0, batches=2))
    drained(job_of(spark, Task(str(folder))))


@pytest.fixture
def session() -> Session:
    """A session without Java: tests/engine/test_same_on_spark.py compares it with Spark."""
    return Session()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of Kafka for the whole run. Tests that need it are left out, and say so, only where Maven lacks it."""
    from tests.servers.kafka import NoArtefactsError, broker, known_classpath  # noqa: PLC0415 - few runs need the client

    try:
        jars = known_classpath(request.config.rootpath / ".pytest_cache" / "kafka-classpath")
    except NoArtefactsError as error:
        pytest.skip(f"KAFKA IS NOT TESTED IN THIS RUN: {error}")
    with broker(jars) as one:
        yield one


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server of PostgreSQL for the whole run. Tests that need it are left out, and say so, only where there is none."""
    from tests.servers.postgresql import PASSWORD, NoServerError, programs, server  # noqa: PLC0415 - few runs need it

    try:
        programs()
    except NoServerError as error:
        pytest.skip(f"POSTGRESQL IS NOT TESTED IN THIS RUN: {error}")
    with pytest.MonkeyPatch.context() as patched, server() as one:
        patched.setenv("SKYPANE_TEST_PASSWORD", PASSWORD)
        yield one


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a run."""
    parser.addoption(
        "--table",
        nargs="?",
        const="folder",
        choices=get_args(By),
        help="a table of what ran, by test, file or folder: seconds of CPU, those of the clock, outcome",
    )
    parser.addoption("--limits", help="fail if a test, or a folder, takes more CPU seconds: TEST,ROOM")


def pytest_configure(config: pytest.Config) -> None:
    """Hold the run to leaving nothing behind, and note what it takes."""
    for plugin in (Leftovers.of(config, TEMPORARY), Failed(), Goals(), Spent()):
        config.pluginmanager.register(plugin)
    if not hasattr(config, "workerinput"):
        limits = config.getoption("limits")
        most = Limits(*map(float, limits.split(","))) if limits else None
        config.pluginmanager.register(Table(config.getoption("table"), most))
    elif "coverage" not in sys.modules:  # which writes what it has found later
        atexit.register(os._exit, 0)  # the last of all: to free a million objects first takes seconds


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return in how many processes the tests of `pytest -n auto` run."""
    return workers(cores(), memory_bytes())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each process what files have taken before: all of them have to sort tests alike."""
    node.workerinput["measured"] = measured(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing | None:
    """Return what shares out tests by file, where that is what is wanted."""
    if config.getoption("dist") != "loadfile":
        return None
    return Sharing(config, log, with_java(cores(), config.getoption("markexpr")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first where they are shared out among processes."""
    if (workerinput := getattr(config, "workerinput", None)) is not None:
        items.sort(key=lambda item: turn(item.nodeid, workerinput["measured"]))


def pytest_collection_finish() -> None:
    """Keep what was collected out of each later collection of garbage: half a million objects live as long as the run."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        gc.unfreeze()  # extensions of C++ report what is never freed; a worker ends before they look
