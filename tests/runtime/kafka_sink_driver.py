"""Run by test_kafka_sink: a driver of a topic that is killed at a line of the sink's code: python -m ... SERVERS TOPIC LINE.

It has three batches. It keeps no ledger, and so repeats the last batch that the topic has, as after a kill before the
commit. In the end it prints how many lines it ran.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks import kafka_topic, topic_writer
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart

SCHEMA = pa.schema([("n", pa.int64())])
FILES = {kafka_topic.__file__, topic_writer.__file__}


class Lines:
    """Counts the lines that are run, and kills the process when there were more than `last`."""

    def __init__(self, last: int) -> None:
        self.last, self.seen = last, 0

    def of(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - what sys.settrace calls
        if frame.f_code.co_filename not in FILES:
            return None
        self.seen += event == "line"
        if self.seen > self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.of


def batch(number: int) -> BatchRows:
    found = pa.table({"n": range(number * 10, number * 10 + 10)}, SCHEMA)
    return BatchRows(SCHEMA, 10, ((number, 10),), (found,))


def main(servers: str, topic: str, last: int) -> None:
    lines = Lines(last)
    sink = kafka_topic.Kafka(servers, topic)
    sys.settrace(lines.of)
    sink.open(QueryStart("q", next_batch=3))
    for number in range(max(0, sink._opened[0].next_batch - 1), 3):
        sink.write(cast("SparkSession", None), batch(number), number)
    sys.settrace(None)
    print(lines.seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
