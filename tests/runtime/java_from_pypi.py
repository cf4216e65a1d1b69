"""Run by test_java on a PATH without java: a batch and a streaming query with a Python stage, on what PyPI offers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.machine.java import find_java
from skypane.runtime.spark.machine.session import session


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def total(frame: DataFrame) -> int:
    return int(frame.groupBy().sum("id").toArrow().column(0)[0].as_py())


def main(folder: Path) -> None:
    print(find_java().origin)
    spark: SparkSession = session("local[2]", conf={"spark.driver.memory": "1g"})
    rows = spark.range(1000)
    print("batch", total(rows.mapInArrow(same, "id long")))
    rows.write.parquet(str(folder / "rows"))
    stream = spark.readStream.schema("id long").parquet(str(folder / "rows")).mapInArrow(same, "id long")
    sums: list[int] = []
    query = (
        stream.writeStream.foreachBatch(lambda frame, _: sums.append(total(frame)))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("stream", sum(sums))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
