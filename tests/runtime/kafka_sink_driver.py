"""Run by test_kafka_sink: a driver of a topic that is killed at a line of the sink's code: python -m ... SERVERS TOPIC LINE.

It has three batches. It keeps no ledger, and so repeats the last batch that the topic has, as after a kill before the
commit. In the end it prints how many lines it ran.
"""

from __future__ import annotations

import sys
from typing import cast

from pyspark.sql import SparkSession
from tests.runtime.killed_lines import Lines, batch

from skypane.runtime.spark.sinks import kafka_topic, topic_writer
from skypane.runtime.spark.sinks.folder_owner import QueryStart

FILES = {kafka_topic.__file__, topic_writer.__file__}


def main(servers: str, topic: str, last: int) -> None:
    lines = Lines(FILES, last)
    sink = kafka_topic.Kafka(servers, topic)
    sys.settrace(lines.of)
    sink.open(QueryStart("q", next_batch=3))
    for number in range(max(0, sink._opened[0].next_batch - 1), 3):
        sink.write(cast("SparkSession", None), batch(number), number)
    sys.settrace(None)
    print(lines.seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
