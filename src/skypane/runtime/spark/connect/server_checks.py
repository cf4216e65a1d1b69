"""Checks of a server of Spark Connect before a stream starts there: its Spark, its Python, and skypane in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.machine.interpreter import NEEDED
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.types import ConfigError

_REMEDY: Final = (
    "install skypane into the Python that the server runs (its PYSPARK_PYTHON), in the version of this client, and "
    "start the server again"
)


def check_sinks(sinks: Sinks | SharedSinks) -> None:
    """Raise ConfigError for a sink whose rows would stay in the server's process, or wait for its next start."""
    for role, sink in sinks.by_role.items():
        if sink.rolling() is not None:
            raise ConfigError(
                f"{role} has roll=, by which rows wait for their file until the query stops; over Spark Connect the server "
                f"ends the process that would write it: leave roll= out, or run the job in a classic session"
            )
        if isinstance(sink, Memory):
            raise ConfigError(
                f"{role} is Memory(), which over Spark Connect would keep the rows in a process beside the server, "
                f"where this client cannot read them: write them to a folder, a topic or a function"
            )


def check_server(spark: SparkSession) -> None:
    """Raise ConfigError if the server cannot run this client's engine; runs one small job."""
    ours, theirs = pyspark.__version__, spark.version
    if _minor(ours) != _minor(theirs):
        raise ConfigError(
            f"the Spark Connect server runs Spark {theirs}, and this client has PySpark {ours}: a stream needs the same "
            f"minor version in both, because functions travel between them as pickles; install pyspark~={theirs}"
        )
    try:
        (row,) = spark.range(0, 1, 1, 1).mapInArrow(_environment_check(NEEDED), "found string").collect()
    except PySparkException as error:
        raise ConfigError(f"Python on the Spark Connect server fails: {cause(error)}; {_REMEDY}") from error
    complaint = complaint_of(json.loads(row.found), _version())
    if complaint is not None:
        raise ConfigError(complaint)


def complaint_of(found: dict[str, Any], ours: str | None) -> str | None:
    """Return what is wrong with the Python that was found on the server, or None; `ours` is this skypane's version."""
    if found["missing"]:
        return f"Python on the Spark Connect server has no {' and no '.join(found['missing'])}; {_REMEDY}"
    if found["sent"]:
        return (
            f"the Spark Connect server has skypane only as {found['sent']}, sent by this session, which reaches the "
            f"functions of queries, but not the process that runs the batches of a stream: {_REMEDY}"
        )
    theirs = found["version"]
    if ours is not None and theirs is not None and ours != theirs:
        return f"the Spark Connect server has skypane {theirs}, and this client skypane {ours}; {_REMEDY}"
    return None


def _environment_check(needed: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that yields the state of the Python that runs it, as a JSON object.

    missing   the packages of `needed` that are missing
    version   skypane's version, null if not known
    sent      the zip file by which the session has brought skypane; null if the process was started with skypane

    It is pickled by value, because skypane itself may be missing there.
    """

    def found_here(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json  # noqa: PLC0415 - on the worker
        import os  # noqa: PLC0415
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415
        from importlib.util import find_spec  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            try:
                installed = version("skypane")
            except PackageNotFoundError:  # an archive on the path
                installed = None
            missing = [name for name in needed if not find_spec(name)]
            known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            skypane = find_spec("skypane")
            archive = getattr(skypane and skypane.loader, "archive", None)  # that of a zip file
            sent = None if archive in known else archive
            found = {"missing": missing, "version": installed, "sent": sent}
            yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    return found_here


def _version() -> str | None:
    try:
        return version("skypane")
    except PackageNotFoundError:
        return None


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
