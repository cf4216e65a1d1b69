"""A client with the package pyspark-client alone; see test_thin_client.py.

Its arguments are the address of a server, a scenario and a folder. What it finds is printed as a line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.connect_driver import BATCHES, by_name, error_of, finish, job, restart
from tests.runtime.streams import write_batches

import skypane as sp


def answered(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run a stream, drained, and a static query."""
    found = restart(spark, folder)
    rows = spark.createDataFrame(pa.concat_tables(BATCHES).combine_chunks())
    best = sp.skyline(rows, "price MIN, rating MAX", by="sensor").toArrow()
    return found | {"best": sorted(best["id"].to_pylist()), "py4j": find_spec("py4j") is not None}


def delta(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Append answers to a Delta table; the first time, the process beside the server is killed after the append of batch 2."""
    write_batches(folder / "in", BATCHES)
    table = str(folder / "answers")

    def deliver(rows: Any, batch_id: int) -> None:
        once = {"txnAppId": "best", "txnVersion": str(batch_id)}
        rows.write.format("delta").mode("append").options(**once).save(table)
        killed = folder / "killed"
        if batch_id == 2 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return killed_once(spark, folder, deliver, lambda: spark.read.format("delta").load(table))


@dataclass(frozen=True)
class Dying(sp.Table):
    """A table whose process dies after the append of batch 2, the first time."""

    killed: Path | None = None

    def write(self, spark: SparkSession, answers: Any, batch_id: int) -> None:
        super().write(spark, answers, batch_id)
        if batch_id == 2 and self.killed is not None and not self.killed.exists():
            self.killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def table(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Append answers to a Delta table of the catalog by sp.Table, with a kill as above."""
    write_batches(folder / "in", BATCHES)
    output = Dying("best", using="delta", killed=folder / "killed")
    return killed_once(spark, folder, output, lambda: spark.table("best"))


def killed_once(spark: SparkSession, folder: Path, output: Any, written: Callable[[], DataFrame]) -> dict[str, Any]:
    """Run the job until its process is killed, then to its end; store the rows that it has written."""
    handle = job(spark, folder, output=output).start(trigger="available now")
    error = error_of(lambda: handle.await_termination(600))
    batches = finish(job(spark, folder, output=output))
    (folder / "out").mkdir()
    pq.write_table(written().toArrow().sort_by("window_start"), folder / "out" / "all.parquet")
    return {"error": error, "batches": batches}


def tables(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run both, one after the other."""
    found = {}
    for name, run in (("delta", delta), ("table", table)):
        (folder / name).mkdir()
        found[name] = run(spark, folder / name)
    return found


SCENARIOS = by_name(answered, tables)

if __name__ == "__main__":
    address, scenario, folder = sys.argv[1:]
    session = SparkSession.builder.remote(address).create()
    try:
        print(json.dumps(SCENARIOS[scenario](session, Path(folder))))
    finally:
        session.stop()
