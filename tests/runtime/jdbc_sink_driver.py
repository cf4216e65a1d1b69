"""Run by test_jdbc_sink: a driver of a table that is killed at a line of the sink's code: python -m ... URL LINE.

It has three batches. It keeps no ledger, and so repeats the last batch that the table has, as after a kill before the
commit. In the end it prints how many lines it ran. With a user in SKYPANE_TEST_USER it logs in.
"""

from __future__ import annotations

import os
import sys
from typing import cast

from pyspark.sql import SparkSession
from tests.runtime.killed_lines import SCHEMA, Lines, batch

from skypane.runtime.spark.sinks import jdbc, postgresql, sqlite_file, table_rows, table_writer
from skypane.runtime.spark.sinks.folder_owner import QueryStart

FILES = {str(module.__file__) for module in (jdbc, postgresql, sqlite_file, table_rows, table_writer)}


def main(url: str, table: str, last: int) -> None:
    user = os.environ.get("SKYPANE_TEST_USER")
    sink = jdbc.Jdbc(url, table, options={"user": user, "password": "$SKYPANE_TEST_PASSWORD"} if user else {})
    sink.check(SCHEMA)
    lines = Lines(FILES, last)
    sys.settrace(lines.of)
    sink.open(QueryStart("q", driver=f"driver-{os.getpid()}", next_batch=3))
    for number in range(max(0, sink._opened[0].next_batch - 1), 3):
        sink.write(cast("SparkSession", None), batch(number), number)
    sys.settrace(None)
    print(lines.seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
