"""Run by test_continuous_recovery as a process of its own: the driver of driver.py, with a continuous skyline for its job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.runtime import continuous_streams, driver
from tests.runtime.driver import Task, die, replace_method

import skypane as sp
from skypane.runtime.spark.engine import continuous as program
from skypane.runtime.spark.sinks.current import FILE
from skypane.runtime.spark.store import Store

MODULE = "tests.runtime.continuous_driver"


def job_of(spark: SparkSession, task: Task, **options: Any) -> sp.Job:
    return continuous_streams.job_of(spark, Path(task.folder), **options)


def _before_the_front_moves() -> None:
    def move(original: Callable[..., None], store: Store, name: str, target: Store, to: str) -> None:
        if to == FILE:
            die()
        original(store, name, target, to)

    replace_method(Store, "move", move)


def _after_the_front_moves() -> None:
    def move(original: Callable[..., None], store: Store, name: str, target: Store, to: str) -> None:
        original(store, name, target, to)
        if to == FILE:
            die()

    replace_method(Store, "move", move)


CRASHES = driver.CRASHES | {
    "before the front moves": _before_the_front_moves,
    "after the front moves": _after_the_front_moves,
}


def main() -> None:
    program._SPARE = program._REFERENCES = 8  # what is stored is written anew every few batches
    driver.CRASHES = CRASHES
    driver.job_of = job_of  # type: ignore[assignment]
    driver.main()


if __name__ == "__main__":
    main()
