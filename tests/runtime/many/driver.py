"""A driver that reads the inputs that FOLDER/inputs.json lists until it is killed: python -m ... FOLDER [last]."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sources.many.inputs_api import inputs


def main(folder: Path, *, last: bool) -> None:
    """Write each batch as one file, by its number, and say so before Spark notes the batch as done."""
    spark = session("local[2]", "skypane-many", {"spark.driver.memory": "512m"})
    rows = inputs(spark, folder / "inputs.json", "n long", rows_per_trigger=200, malformed_column="bad")

    def write(batch: DataFrame, number: int) -> None:
        table: pa.Table = batch.toArrow()
        pq.write_table(table, folder / "out" / f"{number:06}.parquet")
        print(f"batch {number} {batch.rdd.getNumPartitions()} {table.num_rows}", flush=True)

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(availableNow=True) if last else writer.trigger(processingTime="0 seconds")).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), last=sys.argv[2:] == ["last"])
