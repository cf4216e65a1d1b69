"""Run by test_elastic as a process of its own: a driver with elastic workers that dies after a given batch is committed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.runtime.driver import Task, job_of, run_until
from tests.runtime.streams import CountBySensor

import skypane as sp
from skypane.control.elasticity.options import Elasticity
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.runtime.spark.machine.session import session

LAST = 2
"""The batch that the driver does not outlive."""


class Laborious(CountBySensor):
    """Counts rows by sensor, and works for as long as the batch's first price says, in hundredths of a second."""

    def lift(self, rows: pa.Table) -> pa.Table:
        import time  # noqa: PLC0415

        until = time.perf_counter() + rows["price"][0].as_py() / 100
        while time.perf_counter() < until:
            pass
        return super().lift(rows)


@dataclass(frozen=True)
class ByCost(ScalingPolicy):
    """More workers where a row costs more than 5 ms: a measure that does not depend on what else the machine does."""

    name = "by cost"

    def propose(self, situation: Situation, most: int) -> Decision[Workers]:
        if situation.cost_plq is None:
            return Decision("workers", situation.workers, "no cost yet")
        after = Workers(3, 2) if situation.cost_plq > 5e-3 else Workers(1, 1)
        return Decision("workers", after, f"{situation.cost_plq:.4f} s a row, {most} at most")


@dataclass(frozen=True, kw_only=True)
class CostOption(Elasticity):
    @property
    def policy(self) -> ScalingPolicy:
        return ByCost()


def elastic_job(spark: SparkSession, folder: Path, **options: Any) -> sp.Job:
    """Return a job whose policy decides every second batch, and has half an interval in hand when the driver dies."""
    elastic = sp.Threshold(max_workers=8, target=0.2, tolerance=0.05, every=2)
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, elastic=elastic)
    return job_of(spark, Task(str(folder), late=False), workers=workers, **options)


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-elastic", {"spark.driver.memory": "512m"})
    run_until(LAST, elastic_job(spark, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
