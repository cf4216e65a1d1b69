"""The query of the acceptance run, which is killed: python -m measure.admission.driver FOLDER ROWS [last].

Each batch is written as one file named by its number, with the task that has read each row. Then a line is printed,
before Spark commits the batch.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.functions import spark_partition_id

import skypane as sp


def main(folder: Path, rows: int, *, last: bool) -> None:
    """Read until killed, or all that there is."""
    spark = sp.session("local[2]", "skypane-admission", {"spark.driver.memory": "1g", "spark.ui.enabled": "false"})
    stream = sp.inputs(
        spark, folder / "inputs.json", "n long, at double", readers=2, rows_per_trigger=rows, malformed_column="bad"
    )

    def write(batch: DataFrame, number: int) -> None:
        planned = time.time()
        table = batch.withColumn("task", spark_partition_id()).toArrow()
        table = table.append_column("planned", [[planned] * len(table)]).append_column(
            "done", [[time.time()] * len(table)]
        )
        path = folder / "out" / f"{number:06}.parquet"
        pq.write_table(table, path.with_suffix(".writing"))
        path.with_suffix(".writing").rename(path)
        print(f"batch {number} {table.num_rows}", flush=True)

    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(availableNow=True) if last else writer.trigger(processingTime="0 seconds")).start()
    print("ready", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), last=sys.argv[3:] == ["last"])
