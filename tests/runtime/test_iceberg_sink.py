"""A table of Iceberg as output: a batch is there once or not at all, whatever happens to the drivers and beside them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform, HourTransform, IdentityTransform, Transform
from sqlalchemy import QueuePool
from tests.checkout import ROOT
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, VERSIONS, numbers, of
from tests.runtime.table_histories import Interposed
from tests.runtime.table_places import NAME, without_pool
from tests.runtime.table_places import IcebergPlace as Place
from tests.servers.postgresql import PASSWORD, USER

from skypane.runtime.spark.sinks import open_table_writer
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.iceberg import Iceberg
from skypane.types import CheckpointError, ConfigError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def interposed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Interposed:
    return place.interposed(monkeypatch)


def test_each_snapshot_names_its_query_and_its_batch(place: Place):
    sink = place.started(driver="driver-1")
    sink.write(NO_SPARK, numbers(1), 0)
    *_, last = place.table().snapshots()
    assert last.summary is not None
    named = {name: value for name, value in last.summary.additional_properties.items() if name.startswith("skypane")}
    assert named == {
        "skypane.query": "q",
        "skypane.role": "output",
        "skypane.driver": "driver-1",
        "skypane.batch": "0",
    }


def test_a_commit_that_a_server_reports_as_a_conflict_though_it_happened_is_there_once_and_whole(
    place: Place, interposed: Interposed
):
    """A proxy has sent the request twice; PyIceberg by itself would remove the manifests of the first one."""

    def sent_twice(commit: Callable[[], Any]) -> Any:
        commit()
        return commit()

    sink = place.started()
    interposed.step = sent_twice
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


def test_a_batch_is_tried_again_after_the_commit_of_another_writer_with_the_same_files(
    place: Place, interposed: Interposed
):
    sink = place.started()

    def others_write(commit: Callable[[], Any]) -> Any:
        place.foreign(-1)
        return commit()

    interposed.step = others_write
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [-1, 1]
    assert len(list(place.folder.glob("tables/**/*.parquet"))) == 2


def test_other_writers_that_always_commit_first_fail_the_batch_which_comes_again(
    place: Place, interposed: Interposed, monkeypatch: pytest.MonkeyPatch
):
    sink = place.sink(timeout="100 milliseconds")
    sink.check(SCHEMA)
    sink.open(QueryStart("q"))
    commit = SqlCatalog.commit_table
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", lambda *_: interposed.is_lost(lambda: None))
        with pytest.raises(
            OSError,
            match=r"^table \S+ of \S+ default at \S+ did not take batch 0 \(other writers committed first, or replies were lost, for 0.1 s, .*502",
        ):
            sink.write(NO_SPARK, numbers(1), 0)
        with pytest.raises(
            ConfigError, match=r"cannot be used \(other writers committed first.*; start the query again"
        ):
            sink.open(QueryStart("q", driver="driver-2"))
    assert SqlCatalog.commit_table is commit
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@dataclass
class Clock:
    """A clock of this test, in place of the module `time`."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_batch_whose_files_take_longer_than_the_timeout_is_tried_again_all_the_same(
    place: Place, interposed: Interposed, monkeypatch: pytest.MonkeyPatch
):
    sink, clock = place.started(), Clock()
    monkeypatch.setattr(open_table_writer, "time", clock)

    def others_write(commit: Callable[[], Any]) -> Any:
        clock.now += 3600
        place.foreign(-1)
        return commit()

    interposed.step = others_write
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [-1, 1]


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A catalog in a file, or on a server, whose whole address is a secret."""
    if request.param == "sqlite":
        return place
    one = request.getfixturevalue("postgresql")
    address = one.url.replace("postgresql://", f"postgresql+psycopg://{USER}:{PASSWORD}@")
    monkeypatch.setenv("SKYPANE_TEST_URI", address)
    return replace(place, options={"uri": "$SKYPANE_TEST_URI"})


@pytest.mark.long
def test_queries_that_write_into_one_table_at_once_lose_and_double_nothing(shared: Place):
    """Each commit but one of those that are tried together is refused by the catalog, and tried again."""
    table = f"shop.t_{uuid4().hex[:8]}"
    sinks = [shared.started(table=table, query=f"q{at}") for at in range(3)]

    def write(at: int) -> None:
        for batch in range(5):
            sinks[at].write(NO_SPARK, numbers(10 * batch + at), batch)

    with ThreadPoolExecutor(len(sinks)) as threads:
        list(threads.map(write, range(len(sinks))))
    with sinks[0].catalog_place.opened() as catalog:
        found = catalog.load_table(table).scan().to_arrow()["n"].to_pylist()
    assert sorted(found) == sorted(10 * batch + at for batch in range(5) for at in range(3))


@pytest.mark.parametrize("maintained", ["expire", "compact"])
def test_maintenance_between_two_starts_hides_no_batch(place: Place, maintained: str):
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.foreign(-1)
    place.maintenance[maintained]()
    place.expire()
    assert len(place.table().snapshots()) == 1
    second = place.started(2, driver="driver-2")
    for batch in (2, 3):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [-1, 0, 1, 2, 3]


PARTITIONS: dict[str, tuple[str, Transform[Any, Any]]] = {
    "city": ("city", IdentityTransform()),
    "hour": ("window_start", HourTransform()),
    "bucket": ("city", BucketTransform(4)),
}


@pytest.mark.parametrize("partition", [None, *PARTITIONS])
def test_a_version_of_a_window_replaces_its_rows_and_an_empty_one_leaves_none(place: Place, partition: str | None):
    """In a table of the sink, and in tables with partitions that were there before."""
    if partition is not None:
        partitioned(place, *PARTITIONS[partition])
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (0, 0, False, "Rome", 2), (1, 0, False, "Oslo", 3)), 0)
    again = of(VERSIONS, (0, 1, False, "Rome", 4), (1, 1, True, None, None))
    for _ in range(2):
        sink.write(NO_SPARK, again, 1)
    assert place.rows("city", "n", "version") == [("Rome", 4, 1)]
    sink.write(NO_SPARK, of(VERSIONS, (1, 2, False, "Bern", 5)), 2)
    assert place.rows("city", "n", "version") == [("Bern", 5, 2), ("Rome", 4, 1)]


def partitioned(place: Place, column: str, transform: Transform[Any, Any]) -> None:
    """Create the table as another client does, with columns in another order and one more."""
    catalog = place.catalog()
    catalog.create_namespace("shop")
    moment = pa.timestamp("us", "UTC")
    columns = pa.schema([("window_start", moment), ("window_end", moment), ("city", pa.string()), ("n", pa.int64()),
                         ("version", pa.int64()), ("note", pa.string())])  # fmt: skip
    with catalog.create_table(NAME, columns).update_spec() as spec:
        spec.add_field(column, transform)


def test_manifests_are_merged_and_lose_no_version(place: Place):
    """A table of the sink merges a hundred manifests; this one three."""
    sink = place.started(schema=VERSIONS)
    properties = place.table().properties
    assert (
        properties["commit.manifest-merge.enabled"]
        == properties["write.metadata.delete-after-commit.enabled"]
        == "true"
    )
    with place.table().transaction() as changes:
        changes.set_properties({"commit.manifest.min-count-to-merge": "3"})
    for batch in range(9):
        again = [(batch - 2, 1, False, "Rome", 100 + batch)] if batch >= 2 else []
        sink.write(NO_SPARK, of(VERSIONS, (batch, 0, False, "Oslo", batch), *again), batch)
    assert place.rows("n", "version") == [(7, 0), (8, 0), *((100 + batch, 1) for batch in range(2, 9))]
    table = place.table()
    current = table.current_snapshot()
    assert current is not None
    assert len(current.manifests(table.io)) <= 4


@pytest.mark.parametrize("partition", [None, *PARTITIONS])
def test_a_batch_that_only_empties_windows_leaves_none_of_their_rows(place: Place, partition: str | None):
    if partition is not None:
        partitioned(place, *PARTITIONS[partition])
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (1, 0, False, "Oslo", 2)), 0)
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, True, None, None)), 1)
    assert place.rows() == [2]


def test_a_version_that_meets_a_compaction_replaces_its_rows(place: Place, interposed: Interposed):
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (1, 0, False, "Oslo", 2)), 0)

    def compacted(commit: Callable[[], Any]) -> Any:
        place.compact()
        return commit()

    interposed.step = compacted
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 1)
    assert place.rows() == [2, 7]


def test_queries_roles_and_tables_have_separate_batches(place: Place):
    for claim in ({"query": "q"}, {"query": "another"}, {"query": "q", "role": "late"}):
        place.started(**claim).write(NO_SPARK, numbers(1), 0)  # type: ignore[arg-type]
    assert place.rows() == [1, 1, 1]
    place.started(1, table="shop.others").write(NO_SPARK, numbers(7), 0)
    assert place.table("shop.others").scan().to_arrow()["n"].to_pylist() == [7]


def test_one_sink_is_for_one_role(place: Place):
    sink = place.started()
    with pytest.raises(ConfigError, match="one sink is for output and for late; make one for each"):
        sink.open(QueryStart("q", role="late"))


def test_a_table_and_a_checkpoint_that_are_both_taken_back_continue_together(
    place: Place, caplog: pytest.LogCaptureFixture
):
    """That the property is gone is reported in the log."""
    first = place.started()
    for batch in range(3):
        first.write(NO_SPARK, numbers(batch), batch)
    table = place.table()
    of_batch_0 = table.snapshots()[1].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(of_batch_0).commit()
    with pytest.raises(CheckpointError, match=r"rolled back, too, remove its property 'skypane\.batches\.q\.output'"):
        place.started(1)
    with place.table().transaction() as changes:
        changes.remove_properties("skypane.batches.q.output")
    second = place.started(1, driver="driver-2")
    assert "no property skypane.batches.q.output, the note of this query's batches: batch 1 is written" in caplog.text
    for batch in (1, 2):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [0, 1, 2]


def test_a_table_that_was_dropped_and_made_again_under_a_running_query_is_refused(place: Place):
    sink = place.started()
    sink.write(NO_SPARK, numbers(1), 0)
    place.catalog().drop_table(NAME)
    place.catalog().create_table(NAME, SCHEMA)
    with pytest.raises(CheckpointError, match=r"lost its property 'skypane\.batches\.q\.output'"):
        sink.write(NO_SPARK, numbers(2), 1)


@pytest.mark.parametrize("text", ['{"next_batch": 3', "[]", '{"query": "q", "role": "output", "later": 1}'])
@pytest.mark.parametrize("query", ["q", "another"])
def test_a_property_that_cannot_be_read_is_named(place: Place, query: str, text: str):
    """Also that of another query, which a later version of skypane may have written."""
    place.started()
    with place.table().transaction() as changes:
        changes.set_properties({"skypane.batches.q.output": text})
    with pytest.raises(
        CheckpointError, match=r"table shop.answers has the property 'skypane\.batches\.q\.output', which"
    ):
        place.started(query=query, driver="driver-2")


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "yes": (pa.bool_(), True),
    "small": (pa.int16(), -7),
    "large": (pa.int64(), -(2**62)),
    "price": (pa.float64(), 0.1),
    "rate": (pa.float32(), 0.5),
    "none": (pa.float64(), float("inf")),
    "exact": (pa.decimal128(20, 3), Decimal("12345678901234567.125")),
    "text": (pa.string(), 'a,"b"\n%s'),
    "bytes": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), date(2026, 1, 2)),
    "plain": (pa.timestamp("us"), datetime.fromisoformat("2026-01-02T03:04:05.000006")),
    "list": (pa.list_(pa.int64()), [1, None]),
    "pair": (pa.struct([("a", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
             {"a": "ü", "at": datetime(2026, 1, 2, tzinfo=UTC)}),
    "map": (pa.map_(pa.string(), pa.int64()), [("x", 1)]),
    'a.b 100% "sure"': (pa.int64(), 1),
}  # fmt: skip


def test_values_of_every_type_and_nulls_come_back(place: Place):
    schema = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])
    rows = pa.Table.from_pylist([{name: value for name, (_, value) in TYPES.items()}, {}], schema)
    sink = place.started(schema=schema)
    sink.write(NO_SPARK, BatchRows(schema, 2, ((0, 2),), (rows,)), 0)
    found = place.table().scan().to_arrow()
    assert found.to_pylist() == rows.to_pylist()


def test_a_time_with_a_zone_is_the_same_moment_whatever_its_zone(place: Place):
    schema = pa.schema([("moment", pa.timestamp("us", "Europe/Oslo"))])
    rows = pa.table([pa.array([1_000_001], pa.int64()).cast(schema.field(0).type)], schema)
    place.started(schema=schema).write(NO_SPARK, BatchRows(schema, 1, (), (rows,)), 0)
    moments = place.table().scan().to_arrow()["moment"]
    assert (moments.type, moments.cast(pa.int64()).to_pylist()) == (pa.timestamp("us", "UTC"), [1_000_001])


def test_a_time_that_pyiceberg_cannot_take_fails_the_batch_with_the_remedy(place: Place):
    schema = pa.schema([("moment", pa.timestamp("us", "UTC"))])
    rows = pa.table([pa.array([2**62], pa.int64()).cast(schema.field(0).type)], schema)
    sink = place.started(schema=schema)
    with pytest.raises(ConfigError, match="a time is outside of the years 1 to 9999"):
        sink.write(NO_SPARK, BatchRows(schema, 1, (), (rows,)), 0)


@pytest.mark.parametrize(("columns", "message"), [
    ([("window_end", "timestamptz"), ("city", "string"), ("n", "long")],
     r"has no column 'window_start', which the rows have: ALTER TABLE shop.answers ADD COLUMNS \(`window_start` timestamp\)"),
    ([("window_start", "timestamptz"), ("window_end", "timestamptz"), ("city", "long"), ("n", "long")],
     "column 'city' is long, and the rows have string: cast it in the query"),
    ([("window_start", "timestamp"), ("window_end", "timestamptz"), ("city", "string"), ("n", "long")],
     "column 'window_start' is timestamp, and the rows have timestamptz"),
    ([("window_start", "timestamptz"), ("window_end", "timestamptz"), ("city", "string"), ("n", "int")],
     "column 'n' is int, and the rows have long"),
    ([("window_start", "timestamptz"), ("window_end", "timestamptz"), ("city", "string"), ("n", "long"), ("id!", "long")],
     "has the column 'id', which must have a value in each row"),
])  # fmt: skip
def test_a_table_that_cannot_take_the_rows_is_refused_at_the_start(
    place: Place, columns: list[tuple[str, str]], message: str
):
    create(place, columns)
    with pytest.raises(ConfigError, match=message):
        place.started()
    assert place.table().snapshots() == []


@pytest.mark.parametrize(("rows", "column"), [
    (pa.decimal128(20, 3), pa.decimal128(38, 0)),
    (pa.decimal128(20, 3), pa.decimal128(10, 3)),
    (pa.binary(), pa.string()),
    (pa.list_(pa.string()), pa.list_(pa.int64())),
    (pa.struct([("a", pa.int64())]), pa.struct([pa.field("a", pa.int64(), nullable=False)])),
])  # fmt: skip
def test_a_column_that_does_not_hold_the_values_is_refused_at_the_start(
    place: Place, rows: pa.DataType, column: pa.DataType
):
    place.catalog().create_namespace("shop")
    place.catalog().create_table(NAME, pa.schema([("x", column)]))
    with pytest.raises(ConfigError, match=r"column 'x' is .*, and the rows have .*: cast it in the query"):
        place.started(schema=pa.schema([("x", rows)]))


def test_a_wider_decimal_and_comments_of_nested_fields_are_taken(place: Place):
    comment = {b"doc": b"how it is measured"}
    columns = pa.schema([
        ("exact", pa.decimal128(38, 3)), ("pair", pa.struct([pa.field("a", pa.int64(), metadata=comment)])),
    ])  # fmt: skip
    place.catalog().create_namespace("shop")
    place.catalog().create_table(NAME, columns)
    schema = pa.schema([("exact", pa.decimal128(20, 3)), ("pair", pa.struct([("a", pa.int64())]))])
    row = {"exact": Decimal("1.125"), "pair": {"a": 1}}
    sink = place.started(schema=schema)
    sink.write(NO_SPARK, BatchRows(schema, 1, ((0, 1),), (pa.Table.from_pylist([row], schema),)), 0)
    assert place.table().scan().to_arrow().to_pylist() == [row]


def test_a_table_with_partitions_by_a_column_that_the_rows_lack_is_refused_at_the_start(place: Place):
    partitioned(place, "note", IdentityTransform())
    with pytest.raises(ConfigError, match="is partitioned by the column 'note', which the rows do not have"):
        place.started(schema=VERSIONS)


def create(place: Place, columns: list[tuple[str, str]]) -> None:
    """Create a table; a column whose name has a "!" must have a value in each row."""
    kinds = {
        "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp": pa.timestamp("us"),
        "string": pa.string(),
        "long": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
    }
    fields = [pa.field(name.strip("!"), kinds[kind], nullable="!" not in name) for name, kind in columns]
    place.catalog().create_namespace("shop")
    place.catalog().create_table(NAME, pa.schema(fields))


def test_a_column_may_be_wider_and_may_need_values(place: Place):
    moment = "timestamptz"
    create(
        place, [("window_start!", moment), ("window_end!", moment), ("city!", "string"), ("n", "double"), ("x", "int")]
    )
    narrow = SCHEMA.set(3, pa.field("n", pa.float32()))
    sink = place.started(schema=narrow)
    sink.write(NO_SPARK, of(narrow, (0, "Oslo", 0.5)), 0)
    assert place.rows("city", "n", "x") == [("Oslo", 0.5, None)]
    with pytest.raises(ConfigError, match=r"column 'city' must have a value in each row .*DROP NOT NULL"):
        sink.write(NO_SPARK, of(narrow, (0, None, 0.5)), 1)


def test_a_type_that_iceberg_does_not_have_is_refused_by_its_column(place: Place):
    with pytest.raises(ConfigError, match=r"column 'd' is of type duration\[us\], for which Iceberg has no column"):
        place.sink().check(pa.schema([("d", pa.duration("us"))]))
    with pytest.raises(ConfigError, match="column 'u' is of type list<item: uint32>"):
        place.sink().check(pa.schema([("u", pa.list_(pa.uint32()))]))


@pytest.mark.parametrize(("arguments", "message"), [
    ({"table": "prices"}, "table must be the name of a table with its namespace, as in shop.prices, got 'prices'"),
    ({"table": "a..b"}, "table must be the name of a table"),
    ({"catalog": ""}, "catalog must be the name of a catalog"),
    ({"timeout": "0 s"}, "timeout must be longer than 0"),
    ({"options": ["hunter2"]}, "options must be a mapping"),
    ({"options": {"auth": {"token": "hunter2"}}}, "option auth must be a text, a number, True or False"),
    ({"options": {"token": "hunter2"}}, r'option token must be "\$NAME"'),
    ({"options": {"s3.secret-access-key": "hunter2"}}, r'option s3.secret-access-key must be "\$NAME"'),
    ({"options": {"header.X-Key": "hunter2"}}, r'option header.X-Key must be "\$NAME"'),
    ({"options": {"uri": "postgresql+psycopg2://me:hunter2@host/db"}}, r'with a password, .* give it as "\$NAME"'),
    ({"options": {"uri": "postgresql+psycopg2://me:hunter2/hunter2@host/db"}}, r"is postgresql\+psycopg2://\(not shown\) "),
    ({"options": {"uri": "postgresql+psycopg2://me:hunter2#hunter2@host/db"}}, "with a password"),
    ({"options": {"uri": "postgresql+psycopg2://me:hunter2?hunter2@host/db"}}, "with a password"),
    ({"options": {"uri": "postgresql+psycopg2://me:hunter2[@host/db"}}, "with a password"),
    ({"options": {"uri": "postgresql+psycopg2://host/db?password=hunter2"}}, "or with a parameter that may be one"),
    ({"options": {"s3.endpoint": "https://me:hunter2@host"}}, "option s3.endpoint is https://.*with a password"),
    ({"options": {"py-io-impl": "os.path"}}, r"option py-io-impl names code.*\.pyiceberg\.yaml"),
    ({"options": {"py-catalog-impl": "$CODE"}}, "option py-catalog-impl names code"),
])  # fmt: skip
def test_wrong_arguments_are_refused_and_no_secret_is_shown(arguments: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message) as raised:
        Iceberg(**{"table": "shop.prices", **arguments})
    assert "hunter2" not in str(raised.value)


def test_a_secret_is_from_the_environment_and_no_error_shows_it(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Here the type of the catalog is one: PyIceberg repeats a wrong type in its error."""
    sink = place.sink(options={**place.properties, "type": "$SKYPANE_TEST_TYPE"})
    sink.check(SCHEMA)
    with pytest.raises(ConfigError, match=r"option type of catalog default .* environment variable SKYPANE_TEST_TYPE"):
        sink.open(QueryStart("q"))
    monkeypatch.setenv("SKYPANE_TEST_TYPE", "hunter2")
    with pytest.raises(ConfigError, match=r"cannot be used \(.*\(not shown\)") as raised:
        sink.open(QueryStart("q"))
    assert "hunter2" not in f"{raised.value} {sink!r}"
    assert raised.value.__suppress_context__
    monkeypatch.setenv("SKYPANE_TEST_TYPE", "sql")
    sink.open(QueryStart("q"))
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@pytest.mark.parametrize("password", ["hunter%232", "hunter#2", "hunter%2F2"])
def test_an_address_with_a_login_is_hidden_and_its_password_too(monkeypatch: pytest.MonkeyPatch, password: str):
    monkeypatch.setenv("SKYPANE_TEST_URI", f"postgresql+psycopg2://me:{password}@host/db")
    place = Iceberg(NAME, options={"uri": "$SKYPANE_TEST_URI"}).catalog_place
    plain = unquote(password)
    error = ValueError(f"no login with {password} or {plain} at postgresql+psycopg2://me:{password}@host/db")
    assert place.reason(error) == "no login with (not shown) or (not shown) at (not shown)"


def test_a_catalog_that_cannot_be_used_is_named_with_the_remedy(place: Place):
    (place.folder / "catalog.db").mkdir()
    with pytest.raises(
        ConfigError, match=r"shop.answers of catalog default at sqlite:.* cannot be used \(.*unable to open"
    ):
        place.started()


def test_a_disk_that_refuses_fails_the_batch_which_comes_again(place: Place):
    sink = place.started()
    data = place.folder / "tables" / "shop" / "answers" / "data"
    data.write_text("a file where a folder should be")
    with pytest.raises(OSError, match=r"did not take batch 0 .*it has none of its rows, or all"):
        sink.write(NO_SPARK, numbers(1), 0)
    data.unlink()
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


def test_files_of_a_catalog_of_sqlite_do_not_depend_on_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    sink = Iceberg(NAME, options={"uri": "sqlite:///catalog.db", "warehouse": "tables"})
    monkeypatch.chdir("/")
    sink.check(SCHEMA)
    sink.open(QueryStart("q"))
    sink.write(NO_SPARK, numbers(1), 0)
    assert Place(tmp_path).rows() == [1]
    assert sink == Iceberg(NAME, options=Place(tmp_path).properties)


def test_no_connection_to_the_catalog_stays_open_between_two_batches(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Nor after a start that is refused."""
    pools: list[QueuePool] = []
    made = QueuePool.__init__

    def noted(pool: QueuePool, *arguments: Any, **options: Any) -> None:
        made(pool, *arguments, **options)
        pools.append(pool)

    monkeypatch.setattr(QueuePool, "__init__", noted)
    sink = place.started()
    sink.write(NO_SPARK, numbers(1), 0)
    place.started(0, driver="driver-2")
    with pytest.raises(CheckpointError, match="taken over"):
        sink.write(NO_SPARK, numbers(2), 1)
    with pytest.raises(ConfigError, match="has no column 'price'"):
        place.started(0, SCHEMA.append(pa.field("price", pa.int64())), driver="driver-3")
    assert pools
    assert [pool.checkedin() + pool.checkedout() for pool in pools] == [0] * len(pools)


@pytest.mark.long
def test_a_catalog_may_be_in_pyicebergs_own_configuration(place: Place, monkeypatch: pytest.MonkeyPatch):
    """It is read when PyIceberg is imported: here, in a process of its own."""
    program = (
        "import pyarrow as pa; import skypane as sp; from skypane.runtime.spark.sinks.folder_owner import QueryStart\n"
        "sink = sp.Iceberg('shop.answers', catalog='mine'); sink.check(pa.schema([('n', pa.int64())]))\n"
        "sink.open(QueryStart('q'))"
    )
    for name, value in place.properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__MINE__{name.upper()}", value)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert without_pool(load_catalog("mine", **place.properties)).table_exists(NAME)


@pytest.mark.slow
def test_kills_at_any_line_leave_each_batch_once(tmp_path: Path):
    """Each driver is killed at a later line of the sink or of PyIceberg, with a table of its own; the next one finishes."""
    lines = int(driven(tmp_path / "whole").stdout)
    for line in range(0, lines, lines // 40):
        folder = tmp_path / str(line)
        assert driven(folder, line).returncode == -signal.SIGKILL
        assert driven(folder).returncode == 0
        assert Place(folder).rows() == list(range(30)), line


def driven(folder: Path, line: int = 10**9) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.runtime.iceberg_sink_driver", str(folder), str(line)]
    return subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True, timeout=120, check=False
    )
