"""A driver of a sink that is killed at a line of the sink's code, or of its client's; test_sink_kills.py forks it.

It has three batches. It keeps no ledger, and so repeats the last batch that the sink has, as after a kill before the
commit; a sink that has only its last batch gets all of them again. It reads what to do, in JSON: the kind of its sink, the arguments of the sink, and after how many lines it is killed;
in the end it prints how many lines it ran.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final, NamedTuple

import deltalake.table
import pyarrow as pa
import pyiceberg.catalog.sql
import pyiceberg.table.update.snapshot
from deltalake.writer import writer
from tests.runtime.rows_of_batches import NO_SPARK
from tests.servers.postgresql import PASSWORD

from skypane.runtime.spark import document_store, driver_folders
from skypane.runtime.spark.sinks import (
    current_front,
    delta,
    delta_rows,
    delta_table,
    directory,
    folder_owner,
    iceberg,
    iceberg_rows,
    iceberg_table,
    jdbc,
    kafka_topic,
    open_table_sink,
    open_table_writer,
    postgresql,
    repeated_batch,
    sqlite_file,
    table_rows,
    table_writer,
    text_format,
    topic_writer,
)
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart

SCHEMA: Final = pa.schema([("n", pa.int64())])
BATCHES: Final = 3
ROWS: Final = 10
"""Rows of a batch."""


def noted(sink: Any) -> int:
    """Return the last batch that a table or a topic has, by its note."""
    next_batch: int = sink._opened[0].next_batch
    return next_batch - 1


def in_files(sink: directory.Directory) -> int:
    """Return the batch of the last file of a folder."""
    return max((int(path.name.split("-")[1]) for path in Path(sink.path).glob("part-*")), default=0)


class Kind(NamedTuple):
    """How a sink is made of what the test gives, the modules whose lines count, and the last batch that a sink has."""

    sink: Callable[..., Any]
    modules: tuple[ModuleType, ...]
    last: Callable[[Any], int] = noted


_FOLDER: Final = (folder_owner, document_store, driver_folders)
_FILES: Final = Kind(directory.Directory, (directory, repeated_batch, text_format, *_FOLDER), in_files)
_OPEN: Final = (open_table_sink, open_table_writer)
_DATABASE: Final = Kind(jdbc.Jdbc, (jdbc, postgresql, sqlite_file, table_rows, table_writer))
KINDS: Final[Mapping[str, Kind]] = {
    "parquet": _FILES,
    "json": _FILES,
    "current": Kind(current_front.Current, (current_front, *_FOLDER), lambda _: 0),
    "sqlite": _DATABASE,
    "postgresql": _DATABASE,
    "delta": Kind(delta.Delta, (delta, delta_rows, delta_table, *_OPEN, deltalake.table, writer)),
    "iceberg": Kind(
        iceberg.Iceberg,
        (
            iceberg, iceberg_rows, iceberg_table, *_OPEN,
            pyiceberg.table.update.snapshot, pyiceberg.catalog.sql, pyiceberg.table,
        ),
    ),
    "kafka": Kind(kafka_topic.Kafka, (kafka_topic, topic_writer)),
}  # fmt: skip


class Lines:
    """Counts the lines of some files that are run, and kills the process when there were more than `last`."""

    def __init__(self, files: set[str], last: int) -> None:
        self.files, self.last, self.seen = files, last, 0

    def of(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - what sys.settrace calls
        if frame.f_code.co_filename not in self.files:
            return None
        self.seen += event == "line"
        if self.seen > self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.of


def batch(number: int, driver: str) -> BatchRows:
    """Return the batch of a number."""
    found = pa.table({"n": range(number * ROWS, (number + 1) * ROWS)}, SCHEMA)
    return BatchRows(SCHEMA, ROWS, ((number, ROWS),), (found,), driver=driver)


def main() -> None:
    name, arguments, last = json.load(sys.stdin)
    os.environ["SKYPANE_TEST_PASSWORD"] = PASSWORD
    kind, driver = KINDS[name], f"driver-{os.getpid()}"
    sink = kind.sink(**arguments)
    sink.check(SCHEMA)
    lines = Lines({str(module.__file__) for module in kind.modules}, last)
    sys.settrace(lines.of)
    sink.open(QueryStart("q", driver=driver, next_batch=BATCHES))
    for number in range(max(0, kind.last(sink)), BATCHES):
        sink.write(NO_SPARK, batch(number, driver), number)
    sys.settrace(None)
    print(lines.seen, flush=True)
