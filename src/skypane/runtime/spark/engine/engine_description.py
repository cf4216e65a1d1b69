"""The description of an engine: values only, so that another process can receive it and make the engine there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skypane.control.pace import Pace
from skypane.control.parallelism import Workers
from skypane.metrics import BatchMetrics, InputReport
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.query_changes import Begin
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.machine.executor_follower import ExecutorFollower


@dataclass(frozen=True)
class EngineDescription:
    """The settings of a job and of one start of it; plan, sinks and policies are values, so it can be pickled.

    pace   seconds that the trigger leaves between batches; 0 without a trigger, infinite if no further rows come
    paced  decides the pauses between batches; None: Spark's trigger does
    begin  where the query begins if it cannot continue from the state of the checkpoint
    """

    settings: JobSettings
    workers: Workers
    pace: float = 0.0
    begin: Begin | None = None
    paced: Pace | None = None

    @property
    def checkpoint(self) -> str:
        return self.settings.checkpoint

    def engine(
        self,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        inputs: Callable[[], InputReport] = InputReport,
        executors: ExecutorFollower | None = None,
    ) -> Engine:
        """Return the engine, which takes over the checkpoint; see Engine."""
        return Engine(
            self.settings,
            self.workers,
            on_batch,
            inputs,
            pace=self.pace,
            begin=self.begin,
            executors=executors,
            paced=self.paced,
        )
