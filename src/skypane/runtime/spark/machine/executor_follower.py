"""Executors that follow the workers of a query: `executors="follow"` of elastic=.

Where Spark's dynamic allocation is on, it alone sets the number of executors, and the query only reports them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final

from pyspark.sql import SparkSession

from skypane.control.executor_count import ExecutorCount, ExecutorNeed
from skypane.policy import Decision
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.machine.executor_requests import ExecutorRequests
from skypane.runtime.spark.machine.executors import Lookup, allocated, slots_of, workers_are_threads
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.runtime.spark.machine.jvm_executors import JvmExecutors

log = logging.getLogger(__name__)

_INTERRUPTED: Final = "java.lang.InterruptedException"
_APPLICATIONS: Final[dict[str, ExecutorRequests]] = {}
_ADDING: Final = Lock()


class ExecutorFollower:
    """Brings executors to the number that a query needs, before each of its batches."""

    def __init__(
        self,
        requests: ExecutorRequests,
        *,
        requesting: bool = True,
        policy: ExecutorCount | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow by `requests`, which all queries of an application share.

        requesting   whether executors are requested and released; else they are only counted
        """
        self._requests = requests
        self._requesting = requesting
        self._policy = policy or ExecutorCount()
        self._clock = clock
        self._state = self._policy.init()
        self._warned = ""
        #: whether the query still runs; one that has ended needs no executors
        self.runs: Callable[[], bool] = lambda: True

    def follow(self, tasks: int) -> Decision[int]:
        """Request the executors on which so many tasks run at once; return the decision.

        A request that fails leaves the executors as they are: tasks then wait for each other, and nothing is lost.
        """
        need = ExecutorNeed(tasks, self._requests.slots, self._requests.there, self._clock())
        self._state, decision = self._policy.decide(self._state, need)
        if not self._requesting:
            return replace(decision, because=f"{decision.because}; Spark's dynamic allocation sets them")
        try:
            self._requests.bring_to(self, decision.value, self.runs)
        except Py4JJavaError as error:
            if str(error.java_exception).startswith(_INTERRUPTED):  # the query is being stopped
                raise
            return self._refused(decision, cause(error))
        return decision

    def _refused(self, decision: Decision[int], reason: str) -> Decision[int]:
        if reason != self._warned:
            self._warned = reason
            log.warning("executors cannot be requested, so their number stays: %s", reason)
        return replace(decision, because=f"{decision.because}; the request failed: {reason}")


def follower_of(spark: SparkSession) -> ExecutorFollower | None:
    """Return what brings a session's executors to the workers of a query; None if workers are threads."""
    lookup: Lookup = partial(_setting, spark)
    if workers_are_threads(lookup):
        return None
    with _ADDING:
        application = spark.sparkContext.applicationId
        if application not in _APPLICATIONS:
            _APPLICATIONS.clear()  # a driver has one application at a time
            _APPLICATIONS[application] = ExecutorRequests(JvmExecutors(spark), slots_of(lookup))
    return ExecutorFollower(_APPLICATIONS[application], requesting=not allocated(lookup))


def _setting(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(name, None)
