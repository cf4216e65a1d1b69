"""The two kinds of sessions: a classic one, whose driver this process starts, and a client of Spark Connect.

Everything else that the engine uses of a session (DataFrames, mapInArrow, settings, streams) is the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.machine.java_errors import Py4JError, Py4JJavaError

_UNAVAILABLE: Final = "UNAVAILABLE"
"""gRPC's status of a call that reached no server."""


class SessionKind(Protocol):
    """The calls that a classic session and a client of Spark Connect answer differently.

    gone   what an error says if the process that runs Spark does not answer
    """

    gone: str

    def worker_program(self) -> str | None:
        """Return the program that runs Python workers; None if only the server knows it."""
        ...

    def run_workers_with(self, program: str) -> None:
        """Let Python workers that start from now on run `program`."""
        ...

    def tasks_started(self) -> bool | None:
        """Return whether a task of the active stages has started; None if only the server knows it."""
        ...

    def plan_of(self, rows: DataFrame) -> Any:
        """Return the plan of `rows` with its names resolved, an object of Java; None if it is in a server."""
        ...

    def plan_to_run(self, rows: DataFrame) -> Any:
        """Return that plan with cached rows in the place of what they were computed from; None as there."""
        ...

    def with_settings(self, rows: DataFrame, settings: Mapping[str, str]) -> DataFrame | None:
        """Return the rows in a session of their own, with these settings beside those of theirs; None in a server."""
        ...

    def may_be_gone(self, error: Exception) -> bool:
        """Return whether `error` may come from a process of Spark's that has ended."""
        ...


class ClassicSession:
    """A session whose driver is a Java process beside this one, which is called through Py4J."""

    gone = (
        "Spark's Java process does not answer; it has ended or was killed, often for lack of memory: start the "
        "program again to resume the query from its checkpoint"
    )

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def worker_program(self) -> str | None:
        return self._spark.sparkContext.pythonExec

    def run_workers_with(self, program: str) -> None:
        self._spark.sparkContext.pythonExec = program

    def tasks_started(self) -> bool | None:
        tracker = self._spark.sparkContext.statusTracker()
        stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return any(stage.numActiveTasks + stage.numCompletedTasks for stage in stages if stage is not None)

    def plan_of(self, rows: DataFrame) -> Any:
        return rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - as PySpark itself

    def plan_to_run(self, rows: DataFrame) -> Any:
        # A second DataFrame: each keeps the first plan that is requested of it, also if it is cached later.
        return rows.select("*")._jdf.queryExecution().withCachedData()  # noqa: SLF001 - as above

    def with_settings(self, rows: DataFrame, settings: Mapping[str, str]) -> DataFrame | None:
        java, jvm = self._spark._jsparkSession, self._spark._jvm  # noqa: SLF001 - as above
        session = java.cloneSession()
        for name, value in settings.items():
            session.conf().set(name, value)
        dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, self.plan_of(rows))  # type: ignore[union-attr]
        # Python's session of the clone would become the one of RDD.toDF(); that of the rows serves as well.
        return DataFrame(dataset, self._spark)

    def may_be_gone(self, error: Exception) -> bool:
        # Java raises a Py4JJavaError, and is therefore running.
        return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


class ConnectSession:
    """A client of Spark Connect: the driver runs in the server."""

    gone = (
        "the Spark Connect server does not answer; it has ended, or the network to it is interrupted: connect again, "
        "and start the job to resume the query from its checkpoint"
    )

    def worker_program(self) -> str | None:
        return None

    def run_workers_with(self, program: str) -> None:
        raise NotImplementedError(f"the server has chosen the Python of its workers, and {program} stays unused")

    def tasks_started(self) -> bool | None:
        return None

    def plan_of(self, rows: DataFrame) -> Any:
        del rows
        return None

    def plan_to_run(self, rows: DataFrame) -> Any:
        del rows
        return None

    def with_settings(self, rows: DataFrame, settings: Mapping[str, str]) -> DataFrame | None:
        del rows, settings
        return None

    def may_be_gone(self, error: Exception) -> bool:
        code = getattr(error, "getGrpcStatusCode", lambda: None)()
        return isinstance(error, PySparkException) and getattr(code, "name", None) == _UNAVAILABLE


def kind_of(spark: SparkSession) -> SessionKind:
    """Return the kind of a session."""
    return ConnectSession() if over_connect(spark) else ClassicSession(spark)


def over_connect(spark: SparkSession) -> bool:
    """Return whether `spark` is a client of Spark Connect, whose driver runs in the server."""
    try:
        return spark.sparkContext is None
    except PySparkException:
        return True
