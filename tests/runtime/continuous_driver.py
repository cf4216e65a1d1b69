"""Run by test_continuous_recovery as a process of its own: the driver of driver.py, with a continuous skyline for its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.runtime import continuous_streams, driver
from tests.runtime.driver import Task, die, replace_method

import skypane as sp
from skypane.control.placement import DueRows, PlacementChoice
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import front_program as program
from skypane.runtime.spark.engine.shard_stage import ShardClient
from skypane.runtime.spark.sinks.current_front import FILE

MODULE = "tests.runtime.continuous_driver"


def job_of(spark: SparkSession, task: Task, **options: Any) -> sp.Job:
    return continuous_streams.job_of(spark, Path(task.folder), **options)


def _before_the_front_moves() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        if to == FILE:
            die()
        original(store, name, target, to)

    replace_method(DocumentStore, "move", move)


def _after_the_front_moves() -> None:
    def move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
        original(store, name, target, to)
        if to == FILE:
            die()

    replace_method(DocumentStore, "move", move)


def _after_the_shards_have_answered() -> None:
    def answers(original: Callable[..., Any], *args: Any) -> None:
        original(*args)
        die()

    def two(original: Callable[..., Any], *args: Any) -> Any:
        return replace(original(*args), value=PlacementChoice("spark", 2))

    replace_method(program, "place_rows", two)
    replace_method(ShardClient, "_responses", answers)


def _after_the_threads_have_compared() -> None:
    def compacted(original: Callable[..., Any], *args: Any) -> None:
        original(*args)
        die()

    def two(original: Callable[..., Any], *args: Any) -> Any:
        return replace(original(*args), value=PlacementChoice("threads", 2))

    replace_method(program, "place_rows", two)
    replace_method(program.ContinuousProgram, "_compacted", compacted)


PLACES = (
    PlacementChoice("driver"),
    PlacementChoice("threads", 2),
    PlacementChoice("spark", 2),
    PlacementChoice("threads", 3),
    PlacementChoice("spark", 3),
)


def _here_and_there(original: Callable[..., Any], due: DueRows, *args: Any) -> Any:
    """Compare in the driver, in threads and in tasks, so that a kill may come before, between or after any two ways."""
    return replace(original(due, *args), value=PLACES[due.coming % len(PLACES)])


CRASHES = driver.CRASHES | {
    "before the front moves": _before_the_front_moves,
    "after the front moves": _after_the_front_moves,
    "after the shards have answered": _after_the_shards_have_answered,
    "after the threads have compared": _after_the_threads_have_compared,
}


def main() -> None:
    for name in ("_SPARE", "_REFERENCES"):
        setattr(program, name, 8)  # what is stored is written again every few batches
    replace_method(program, "place_rows", _here_and_there)
    driver.CRASHES = CRASHES
    driver.job_of = job_of  # type: ignore[assignment]
    driver.main()


if __name__ == "__main__":
    main()
