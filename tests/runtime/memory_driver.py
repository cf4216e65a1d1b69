"""Run by test_memory as a process of its own, whose memory is that of its stream: prints it after every tenth of its batches."""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from measure.java_heap import live_bytes
from measure.processes import resident_bytes
from pyspark.sql import SparkSession
from tests.java import end, inside_java
from tests.runtime.streams import SECOND, late_rows, stream_job, write_batches

import skypane as sp
from skypane.runtime.spark.machine.session import session

MIB = 1 << 20
LENGTH, SLIDE = 60 * SECOND, 20 * SECOND


@dataclass(frozen=True)
class Sample:
    """Memory after a batch, in MiB: of this process, and live in the virtual machine's heap."""

    batch: int
    python: float
    java: float


def job_of(spark: SparkSession, folder: Path, batches: int) -> sp.Job:
    stream = late_rows(1, batches=batches)
    write_batches(folder / "in", stream)
    query, windows = sp.Skyline(sp.low("price") * sp.high("rating"), by="sensor"), sp.Windows(LENGTH, SLIDE)
    return stream_job(
        spark, folder, query, stream[0].schema, progress=sp.Watermark("1 minute"), window=windows, late=folder / "late"
    )


def sample(spark: SparkSession, batch: int) -> Sample:
    gc.collect()
    python = resident_bytes()
    return Sample(batch, round(python / MIB, 1), round(live_bytes(spark) / MIB, 1))


def main(folder: Path, batches: int) -> None:
    spark = session("local[2]", "memory", {"spark.driver.memory": "2g", **inside_java()})

    def look(batch: sp.BatchMetrics) -> None:
        if (batch.batch_id + 1) % (batches // 10) == 0:
            print(json.dumps(asdict(sample(spark, batch.batch_id + 1))), flush=True)

    assert job_of(spark, folder, batches).start(trigger="available now", on_batch=look).await_termination(3_000)
    end(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
