"""The calls by which an application requests executors and releases them: only Spark's JVM has them.

`requestTotalExecutors` and `killExecutor` are Spark's developer API; `getExecutorIds` and the status store are public to
Java only. No other file depends on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class ExecutorTasks(NamedTuple):
    """Tasks that an executor runs now, and that it can run at once."""

    running: int
    slots: int


class JvmExecutors:
    """The executors of the application of a classic session."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._context = context._jsc.sc()  # noqa: SLF001 - PySpark has no name for it
        self._anywhere = context._jvm.PythonUtils.toScalaMap({})  # noqa: SLF001

    def ids(self) -> list[str]:
        """Return the names of the executors that have registered and are not known to be lost."""
        listed = self._context.getExecutorIds().mkString(",")
        return listed.split(",") if listed else []

    def tasks(self) -> dict[str, ExecutorTasks]:
        """Return the tasks of each executor; Spark may list a new executor here a moment later than in ids()."""
        listed = self._context.statusStore().executorList(True)  # noqa: FBT003 - only the active ones
        executors = (listed.apply(at) for at in range(listed.size()))
        return {one.id(): ExecutorTasks(one.activeTasks(), one.maxTasks()) for one in executors if one.id() != "driver"}

    def request(self, total: int) -> None:
        """Have the cluster start executors until there are `total`; it replaces those that are lost, and stops none."""
        self._context.requestTotalExecutors(total, 0, self._anywhere)

    def kill(self, executor: str) -> None:
        """Stop an executor, and lower the requested total by one; its running tasks are run again elsewhere."""
        self._context.killExecutor(executor)
