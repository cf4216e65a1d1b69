"""Hypothesis profiles, and one Spark session for the whole run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from skypane.runtime.spark.machine.session import session

if TYPE_CHECKING:
    from experiments.kafka_broker import Broker

# A first call compiles kernels, which no deadline foresees.
settings.register_profile("default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
# Derandomised: a red build is red again when it is run again.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


# What a developer has calibrated must not decide anything here.
os.environ["SKYPANE_CACHE"] = tempfile.mkdtemp(prefix="skypane-tests-")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of two threads, started through the same door as a user's."""
    # Functions of test modules are pickled by name: workers must find those modules too.
    root = str(Path(__file__).parent.parent)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{inherited}" if inherited else root
    started = session("local[2]", "skypane-tests", {"spark.driver.memory": "2g"})
    yield started
    started.stop()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of Kafka for the whole run. Tests that need it are left out, and say so, only where Maven lacks it."""
    from experiments.kafka_broker import NoArtefactsError, broker, known_classpath  # noqa: PLC0415 - few runs need the client

    try:
        jars = known_classpath(request.config.rootpath / ".pytest_cache" / "kafka-classpath")
    except NoArtefactsError as error:
        pytest.skip(f"KAFKA IS NOT TESTED IN THIS RUN: {error}")
    with broker(jars) as one:
        yield one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever reaches for the session, directly or through a fixture of its own: `-m "not spark"` stays quick."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
