"""What a new executor takes until its first answer, with and without kernels that were compiled before.

    python -m measure.elastic.cold_executor [--docs docs] [--rounds 3] [--cluster]

The first table is of Python alone: a new process lifts 100,000 rows with no cache of kernels, with the cache that
`skypane warm` has filled, and with one that any processor can use (NUMBA_CPU_NAME=generic). Processor seconds are measured,
so other programs on the machine disturb little. With `--cluster`, the second table is of an executor of one core on a
standalone cluster of this machine, whose other executors are gone: from the request until Spark knows it, until it has
answered, and the same answer again. Rounds of all ways alternate; medians are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession
from tests.runtime.cluster import standalone

from measure.elastic.cold_worker import NAMES, ROWS, lifted
from measure.elastic.executors import CONF
from measure.elastic.runs import started
from measure.tables import markdown_table, replace_between
from skypane.runtime.resources import cores
from skypane.runtime.spark.machine.jvm_executors import JvmExecutors
from skypane.wording import count

NONE: Final = "no cache"
WAYS: Final[Mapping[str, Mapping[str, str]]] = {
    NONE: {},
    "warmed": {},
    "warmed for any processor": {"NUMBA_CPU_NAME": "generic"},
}
"""Ways to have kernels, and the environment of their processes beside the folder of the cache."""
GOAL: Final = 5.0
"""Seconds from the grant to the first answer that are the goal."""
OF_WORKERS: Final = (
    "query", "kernels", "compiled", f"first lift of {count(ROWS)} rows, s of a processor", "a later one, ms",
)  # fmt: skip
OF_EXECUTORS: Final = (
    "query", "kernels", "executor there, s", "first answer after that, s", "the next, s", f"within {GOAL:g} s",
)  # fmt: skip


@dataclass
class Cache:
    """The folder of compiled kernels of each way."""

    folder: Path
    warmed: set[str] = field(default_factory=set)

    def environment(self, way: str) -> dict[str, str]:
        """Return what a process of this way has in its environment; its folder is ready."""
        folder = self.folder / way.replace(" ", "-")
        environment = {"NUMBA_CACHE_DIR": str(folder), **WAYS[way]}
        if way == NONE:
            shutil.rmtree(folder, ignore_errors=True)
        elif way not in self.warmed:
            subprocess.run([sys.executable, "-m", "skypane", "warm"], env=os.environ | environment, check=True)
            self.warmed.add(way)
        return environment

    def kernels(self, way: str) -> int:
        """Return how many compiled kernels are in the folder."""
        return len(list((self.folder / way.replace(" ", "-")).rglob("*.nbc")))


def workers(rounds: int, cache: Cache) -> list[list[str]]:
    """Return a line of the first table for each query and way."""
    firsts, laters, compiled = defaultdict(list), defaultdict(list), {}
    for _ in range(rounds):
        for name in NAMES:
            for way in WAYS:
                environment, before = cache.environment(way), cache.kernels(way)
                shown = _worker(name, environment)
                firsts[name, way].append(shown["first"])
                laters[name, way].append(shown["later"])
                compiled[name, way] = cache.kernels(way) - before
    return [
        [
            name,
            way,
            str(compiled[name, way]),
            f"{median(firsts[name, way]):.1f}",
            f"{1e3 * median(laters[name, way]):.0f}",
        ]
        for name, way in firsts
    ]


def _worker(name: str, environment: Mapping[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "measure.elastic.cold_worker", name]
    done = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True)  # noqa: S603
    shown: dict[str, float] = json.loads(done.stdout)
    return shown


def executors(rounds: int, cache: Cache, master: str) -> list[list[str]]:
    """Return a line of the second table for each query and way."""
    times: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(rounds):
        for way in WAYS:
            for name in NAMES:
                with _session(master, cache.environment(way)) as spark:
                    times[name, way].append(_answered(spark, name))
    lines = []
    for (name, way), some in times.items():
        there, first, later = (median(one) for one in zip(*some, strict=True))
        lines.append([name, way, f"{there:.1f}", f"{first:.1f}", f"{later:.1f}", "yes" if first <= GOAL else "no"])
    return lines


@contextmanager
def _session(master: str, environment: Mapping[str, str]) -> Iterator[SparkSession]:
    conf = {f"spark.executorEnv.{name}": value for name, value in environment.items()}
    spark = started(master, {**CONF, "spark.cores.max": "1", **conf})
    try:
        yield spark
    finally:
        spark.stop()


def _answered(spark: SparkSession, name: str) -> tuple[float, float, float]:
    """Return the seconds until a new executor is there, until it has answered, and of a second answer."""
    calls, job = JvmExecutors(spark), partial(_job, spark, name)
    spark.range(
        1
    ).count()  # what the driver loads and compiles is not measured, and no executor has a Python worker yet
    calls.request(0)
    for executor in calls.ids():
        calls.kill(executor)
    calls.request(0)
    _until(lambda: not calls.ids())
    began = time.perf_counter()
    calls.request(1)
    _until(lambda: bool(calls.ids()))
    there = time.perf_counter()
    job()
    first = time.perf_counter()
    job()
    return there - began, first - there, time.perf_counter() - first


def _job(spark: SparkSession, name: str) -> None:
    spark.range(0, 1, 1, 1).mapInArrow(partial(lifted, name=name), "rows long").collect()


def _until(true: Callable[[], bool], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster does neither grant nor remove an executor")
        time.sleep(0.01)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both tables, or the first one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--docs", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--cluster", action="store_true")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="skypane-cold-") as temporary:
        cache = Cache(Path(temporary) / "caches")
        _show(given.docs, "cold worker", markdown_table(OF_WORKERS, workers(given.rounds, cache)))
        if given.cluster:
            with standalone(Path(temporary) / "cluster", cores=1) as master:
                lines = executors(given.rounds, cache, master)
            _show(given.docs, "cold executor", markdown_table(OF_EXECUTORS, lines))


def _show(docs: Path | None, mark: str, table: str) -> None:
    text = f"{cores()} cores, load {os.getloadavg()[2]:.1f}.\n\n{table}"
    print(text, flush=True)
    if docs is not None:
        replace_between(docs / "clusters.md", mark, text)


if __name__ == "__main__":
    main()
