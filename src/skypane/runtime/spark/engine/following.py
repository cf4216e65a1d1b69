"""Executors that follow the tasks of a query's batches, from one batch to the next."""

from __future__ import annotations

from skypane.metrics import BatchMetrics
from skypane.policy import Decision
from skypane.runtime.spark.engine.control_loop import BatchDecisions
from skypane.runtime.spark.machine.executor_follower import ExecutorFollower


class FollowingExecutors:
    """Requests the executors of each batch before its tasks begin."""

    def __init__(self, follower: ExecutorFollower | None) -> None:
        """Follow by `follower`; None: executors are left to Spark."""
        self._follower = follower
        self._last: BatchMetrics | None = None

    def before(self, steering: BatchDecisions) -> Decision[int] | None:
        """Request the executors of a batch that is about to begin; None if executors do not follow."""
        if self._follower is None:
            return None
        return self._follower.follow(tasks_at_once(steering, self._last))

    def after(self, metrics: BatchMetrics) -> None:
        """Remember the last batch."""
        self._last = metrics


def tasks_at_once(steering: BatchDecisions, last: BatchMetrics | None) -> int:
    """Return how many tasks of a stage are expected to run at once.

    n counts for rows, or the readers of the last batch if the source sets them and they are more. m counts if windows
    were answered on executors in the last batch: the driver needs none.
    """
    plq, wlq = steering.workers.plq, steering.workers.wlq
    if last is None:
        return plq
    read = len(last.task_rows) if steering.routing is None and steering.tasks is None else 0
    return max(plq, read, wlq if last.wlq_where == "spark" else 0)


def executors_there(decision: Decision[int] | None) -> int | None:
    """Return how many executors there were at the decision; None if executors do not follow."""
    return None if decision is None else round(decision.figures["there"])
