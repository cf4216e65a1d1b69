"""Run by test_delta_sink: a driver of a table that is killed at a line of the sink's code or of delta-rs's Python: python -m ... FOLDER LINE.

It has three batches. It keeps no ledger, and so repeats the last batch that the table has, as after a kill before the
commit. In the end it prints how many lines it ran.
"""

from __future__ import annotations

import os
import sys

from deltalake import table
from deltalake.writer import writer
from tests.runtime.killed_lines import SCHEMA, Lines, batch
from tests.runtime.rows_of_batches import NO_SPARK

from skypane.runtime.spark.sinks import delta, delta_rows, delta_table, open_table_sink, open_table_writer
from skypane.runtime.spark.sinks.folder_owner import QueryStart

OURS = (delta, delta_rows, delta_table, open_table_sink, open_table_writer)
FILES = {str(module.__file__) for module in (*OURS, table, writer)}


def main(folder: str, last: int) -> None:
    sink = delta.Delta(f"{folder}/answers")
    sink.check(SCHEMA)
    lines = Lines(FILES, last)
    sys.settrace(lines.of)
    sink.open(QueryStart("q", driver=f"driver-{os.getpid()}", next_batch=3))
    for number in range(max(0, sink._opened[0].next_batch - 1), 3):
        sink.write(NO_SPARK, batch(number), number)
    sys.settrace(None)
    print(lines.seen)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
