"""Every sink and every source keeps the laws; the kits that say so are found to see what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource
from tests.rows import table
from tests.servers.kafka import Broker
from tests.servers.postgresql import USER, Server
from tests.subclasses import concrete

import skypane.runtime.spark.sinks
import skypane.runtime.spark.sources
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.current_front import FILE, Current
from skypane.runtime.spark.sinks.delta import Delta
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.foreach import Foreach
from skypane.runtime.spark.sinks.function import Call
from skypane.runtime.spark.sinks.iceberg import Iceberg
from skypane.runtime.spark.sinks.jdbc import Jdbc
from skypane.runtime.spark.sinks.kafka_topic import Kafka
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sinks.spark_table import Table
from skypane.runtime.spark.sources.many.discovery import KINDS
from skypane.runtime.spark.sources.many.source import ManySource
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import ReplaySource
from skypane.testing import check_sink, check_source
from skypane.testing.sink_kit import some_rows

NUMBERS = pa.table({"n": pa.array(range(12), pa.int64()), "city": pa.array(["Oslo", "Rome", None] * 4, pa.string())})


def visible(sink: Directory) -> list[Path]:
    return sorted(path for path in Path(sink.path).iterdir() if path.name[0] not in "._")


def parquet(sink: Directory) -> pa.Table:
    tables = [pq.read_table(path) for path in visible(sink)]
    return pa.concat_tables(tables) if tables else NUMBERS.slice(0, 0)


def csv(sink: Directory) -> pa.Table:
    quoted = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    return pa.concat_tables(pa.csv.read_csv(path, convert_options=quoted) for path in visible(sink))


def lines(sink: Directory) -> pa.Table:
    found = [json.loads(line) for path in visible(sink) for line in path.read_text().splitlines()]
    whole = [{name: row.get(name) for name in NUMBERS.schema.names} for row in found]
    return pa.Table.from_pylist(whole, NUMBERS.schema)


def write_whole(rows: pa.Table, path: Path) -> None:
    """Write a file that is there when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    pq.write_table(rows, draft)
    draft.rename(path)


def by_number(folder: str, batch: DataFrame, number: int) -> None:
    write_whole(batch.toArrow(), Path(folder) / f"{number}.parquet")


@dataclass(frozen=True)
class ByNumber(Call):
    """A function's folder, named so that it can be read."""

    path: str = ""


def called(folder: str) -> ByNumber:
    return ByNumber(partial(by_number, folder), folder)


def current(sink: Current) -> pa.Table:
    return pq.read_table(Path(sink.path) / FILE)


def named_by(place: str) -> str:
    return f"kit_{blake2b(place.encode(), digest_size=8).hexdigest()}"


def in_topic(place: str) -> Kafka:
    """Return the sink of a topic that is named by the path, and that exists."""
    servers = os.environ["SKYPANE_TEST_KAFKA"]
    sink = Kafka(servers, named_by(place))
    admin = AdminClient({"bootstrap.servers": servers})
    with suppress(KafkaException):  # it exists
        admin.create_topics([NewTopic(sink.topic, 1)])[sink.topic].result(30)
    limit = time.monotonic() + 30
    while sink.topic not in admin.list_topics(timeout=30).topics:
        assert time.monotonic() < limit
    return sink


def in_file(place: str) -> Jdbc:
    return Jdbc(f"sqlite:{place}.db", "answers", key="window_start, city")


def on_server(place: str) -> Jdbc:
    """Return the sink of a table that is named by the path."""
    login = {"user": USER, "password": "$SKYPANE_TEST_PASSWORD"}
    return Jdbc(os.environ["SKYPANE_TEST_POSTGRESQL"], named_by(place), options=login)


def of_table(sink: Jdbc) -> pa.Table:
    schema = some_rows().schema
    with sink.database.transaction() as cursor:
        found = cursor.execute(f"SELECT {', '.join(schema.names)} FROM {sink.table}").fetchall()  # noqa: S608
    columns = [pa.array([row[at] for row in found]).cast(each.type) for at, each in enumerate(schema)]
    return pa.table(columns, schema=schema)


def in_catalog(place: str) -> Iceberg:
    """Return the sink of a table whose catalog and files are beside the path."""
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    return Iceberg("kit.answers", options={"uri": f"sqlite:///{place}.db", "warehouse": f"file://{place}"})


def of_catalog(sink: Iceberg) -> pa.Table:
    with sink.catalog_place.opened() as catalog:
        found: pa.Table = catalog.load_table(sink.table).scan().to_arrow()
    return found


def of_delta(sink: Delta) -> pa.Table:
    found: pa.Table = DeltaTable(sink.path).to_pyarrow_table()
    return found.select(some_rows().schema.names)


@dataclass(frozen=True)
class Epochs:
    """A writer of PySpark's foreach that writes a file for each batch, and refuses the batches that it has."""

    folder: Path
    rows: list[Row] = field(default_factory=list)

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self.rows[:] = [Row(partition=partition_id, epoch=epoch_id)]
        return not (self.folder / f"{epoch_id}.parquet").exists()

    def process(self, row: Row) -> None:
        self.rows.append(row)

    def close(self, error: Exception | None) -> None:
        first, *rows = self.rows
        if rows and error is None:
            whole = pa.Table.from_pylist([row.asDict() for row in rows], NUMBERS.schema)
            write_whole(whole, self.folder / f"{first.epoch}.parquet")


def row_by_row(place: str) -> Foreach:
    return Foreach(Epochs(Path(place)))


def of_files(sink: ByNumber | Foreach) -> pa.Table:
    """Return the rows of a folder with a file for each batch."""
    folder = sink.writer.folder if isinstance(sink, Foreach) else Path(sink.path)
    return pa.concat_tables(pq.read_table(path) for path in folder.glob("*.parquet"))


SINKS: dict[str, tuple[type[Sink], Callable[[str], Sink], Callable[[Any], pa.Table], dict[str, Any]]] = {
    "parquet": (Directory, Directory, parquet, {}),
    "csv": (Directory, partial(Directory, format="csv"), csv, {"rows": NUMBERS}),
    "json": (Directory, partial(Directory, format="json"), lines, {"rows": NUMBERS}),
    "current": (Current, Current, current, {"keeps": "last"}),
    "call": (Call, called, of_files, {"rows": NUMBERS, "kills": 1}),
    "delta": (Delta, Delta, of_delta, {}),
    "foreach": (Foreach, row_by_row, of_files, {"rows": NUMBERS}),
    "iceberg": (Iceberg, in_catalog, of_catalog, {}),
    "jdbc": (Jdbc, in_file, of_table, {}),
    "memory": (Memory, lambda _: Memory(), Memory.table, {"lasting": False}),
    "console": (Console, lambda _: Console(), Memory.table, {"keeps": "nothing", "lasting": False}),
}
"""Each sink, how it is made and read, and what else the kit is to know; test_sink_kills.py kills the drivers of those that need
no Spark, at any line."""


@pytest.mark.parametrize("kind", SINKS)
def test_every_sink_keeps_the_laws(spark: SparkSession, tmp_path: Path, kind: str):
    _, make, read, more = SINKS[kind]
    options: dict[str, Any] = {"kills": 0, **more}
    check_sink(spark, make, read, tmp_path, **options)


@pytest.mark.slow
def test_a_writer_of_rows_keeps_the_laws_wherever_its_driver_is_killed(spark: SparkSession, tmp_path: Path):
    check_sink(spark, row_by_row, of_files, tmp_path, rows=NUMBERS, kills=2)


@pytest.mark.slow
def test_a_topic_and_a_table_of_a_server_keep_the_laws_of_sinks(
    spark: SparkSession, tmp_path: Path, kafka: Broker, postgresql: Server, monkeypatch: pytest.MonkeyPatch
):
    def messages(sink: Kafka) -> pa.Table:
        found = [json.loads(value or "") for _, value in kafka.committed(sink.topic)]
        return pa.Table.from_pylist(found, NUMBERS.schema)

    monkeypatch.setenv("SKYPANE_TEST_KAFKA", kafka.address)
    check_sink(spark, in_topic, messages, tmp_path / "topic", rows=NUMBERS, kills=0)
    monkeypatch.setenv("SKYPANE_TEST_POSTGRESQL", postgresql.url)
    check_sink(spark, on_server, of_table, tmp_path / "table", kills=0)


def test_no_sink_is_left_out():
    """Table adds a batch again that comes again, except in Delta: test_spark_table.py."""
    assert concrete(Sink, skypane.runtime.spark.sinks) == {Kafka, Table, *(sink for sink, *_ in SINKS.values())}  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Files(Sink):
    """A sound sink, of a file for each batch; its faults are made of it below."""

    path: str

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark
        self.save(answers.table(), f"{batch_id:06d}.parquet")

    def save(self, rows: pa.Table, name: str) -> None:
        write_whole(rows, Path(self.path) / name)


class Appends(Files):
    def save(self, rows: pa.Table, name: str) -> None:
        there = len(list(Path(self.path).glob("*.parquet")))
        super().save(rows, f"{there}-{name}")


class BeginsAnew(Files):
    def open(self, claim: QueryStart) -> None:
        del claim
        for path in Path(self.path).glob("*.parquet"):
            path.unlink()


class WritesInPlace(Files):
    """Row by row into a file that counts as whole as soon as it is there."""

    def save(self, rows: pa.Table, name: str) -> None:
        if not (Path(self.path) / name).exists():
            for at in range(rows.num_rows):
                super().save(rows.slice(0, at + 1), name)


class TakesDriversOnly(Files):
    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        Path(self.path).mkdir(parents=True, exist_ok=True)
        if answers.tables:
            super().write(spark, answers, batch_id)


@pytest.mark.parametrize(
    ("sink", "broken"),
    [
        (Appends, "written twice is there once"),
        (BeginsAnew, "continues where the one before it ended"),
        (TakesDriversOnly, "has the rows of each batch"),
        (WritesInPlace, "killed in a batch is replaced"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_kit_names_the_law_that_a_sink_breaks(spark, tmp_path, sink: type[Files], broken: str):
    check_sink(spark, Files, parquet, tmp_path / "sound", kills=0)
    with pytest.raises(AssertionError, match=broken):
        check_sink(spark, sink, parquet, tmp_path / "wrong", kills=int("killed" in broken))


def grow(folder: Path) -> str:
    """Three csv files, the list of which is the source's."""
    for name, count in (("a", 5), ("b", 1), ("c", 7)):
        (folder / f"{name}.csv").write_text("".join(f"{at},{name}\n" for at in range(count)))
    return json.dumps([str(folder / "*.csv")])


def received(folder: Path) -> str:
    """A receiver's log of two segments."""
    with SegmentLog(folder / "log", segment_bytes=60) as log:
        for at in range(9):
            log.append(b'{"n": %d, "city": "Oslo"}\n' % at)
    return json.dumps([{"segments": str(folder / "log")}])


def finished(folder: Path) -> str:
    for at in range(3):
        pq.write_table(NUMBERS, folder / f"{at}.parquet", row_group_size=5)
    return json.dumps([{"parquet": f"{folder}/*.parquet"}])


def compressed(folder: Path) -> str:
    for at in range(3):
        lines = [json.dumps({"n": at * 20 + n, "city": "Oslo"}) for n in range(13)]
        members = [gzip.compress("".join(f"{line}\n" for line in part).encode()) for part in (lines[:5], lines[5:])]
        (folder / f"{at}.json.gz").write_bytes(b"".join(members) + members[0][:-9])
    return json.dumps([f"{folder}/*.json.gz"])


INPUTS = {"path": grow, "compressed": compressed, "parquet": finished, "segments": received}
COLUMNS = "n BIGINT, city STRING, input STRING"


@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_of_every_kind_keep_the_laws_of_sources(spark: SparkSession, tmp_path: Path, kind: str):
    (tmp_path / "in").mkdir()
    options = {"inputs": INPUTS[kind](tmp_path / "in"), "rowsPerTrigger": "7"}
    check_source(spark, ManySource, options, tmp_path, schema=COLUMNS)


@pytest.mark.slow
def test_topics_keep_the_laws_of_sources(spark: SparkSession, tmp_path: Path, kafka: Any):
    kafka.create("kit", 2)
    kafka.send("kit", [json.dumps({"n": at, "city": "Oslo"}).encode() for at in range(9)])
    options = {"inputs": json.dumps([{"kafka": kafka.address, "topic": "kit"}]), "rowsPerTrigger": "4"}
    check_source(spark, ManySource, options, tmp_path, schema=COLUMNS)


def test_no_kind_of_input_is_left_out():
    # Those of folders of objects are checked in tests/runtime/many/test_object_streams.py.
    assert {*KINDS, "compressed"} == {*INPUTS, "kafka", "objects"}


def test_a_replay_keeps_the_laws_of_sources(spark: SparkSession, tmp_path: Path):
    write_recording(table(list(range(17)), [1.0] * 17), tmp_path / "rows.arrow")
    check_source(spark, ReplaySource, {"path": str(tmp_path / "rows.arrow"), "rowsPerTrigger": "9"}, tmp_path)


@pytest.mark.slow
def test_a_workload_keeps_the_laws_of_sources(spark: SparkSession, tmp_path: Path):
    parameters = json.dumps({"rate": 1_000, "rows": 300, "seed": 3})
    options = {"workload": "poisson", "parameters": parameters, "rowsPerTrigger": "200"}
    check_source(spark, ReplaySource, options, tmp_path)


def test_no_source_is_left_out():
    assert concrete(DataSource, skypane.runtime.spark.sources) == {ManySource, ReplaySource}
