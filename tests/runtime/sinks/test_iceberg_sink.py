"""A table of Iceberg as output: a batch is there once or not at all, whatever happens to the drivers and beside them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import QueuePool
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, VERSIONS, numbers, of
from tests.runtime.sinks.opening import opened
from tests.runtime.table_histories import Interposed, write_at_once
from tests.runtime.table_places import NAME, without_pool
from tests.runtime.table_places import IcebergPlace as Place
from tests.servers.postgresql import PASSWORD, USER, Server

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
    assert named == {"skypane.query": "q", "skypane.role": "output", "skypane.driver": "driver-1", "skypane.batch": "0"}


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


def test_other_writers_that_always_commit_first_fail_the_batch_which_comes_again(
    place: Place, interposed: Interposed, monkeypatch: pytest.MonkeyPatch
):
    sink = opened(place.sink(timeout="100 milliseconds"))
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


@pytest.mark.long
def test_queries_that_write_into_one_table_at_once_lose_and_double_nothing(
    place: Place, postgresql: Server, monkeypatch: pytest.MonkeyPatch
):
    """The catalog is on a server, whose whole address is a secret; test_open_tables.py has one in a file."""
    address = postgresql.url.replace("postgresql://", f"postgresql+psycopg://{USER}:{PASSWORD}@")
    monkeypatch.setenv("SKYPANE_TEST_URI", address)
    shared, table = replace(place, options={"uri": "$SKYPANE_TEST_URI"}), f"shop.t_{uuid4().hex[:8]}"
    sinks = [shared.started(table=table, query=f"q{at}") for at in range(3)]
    batches = write_at_once(sinks)
    with sinks[0].catalog_place.opened() as catalog:
        found = catalog.load_table(table).scan().to_arrow()["n"].to_pylist()
    assert sorted(found) == batches


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


def test_tables_of_a_query_have_separate_batches(place: Place):
    place.started().write(NO_SPARK, numbers(1), 0)
    place.started(1, table="shop.others").write(NO_SPARK, numbers(7), 0)
    assert place.rows() == [1]
    assert place.table("shop.others").scan().to_arrow()["n"].to_pylist() == [7]


def test_a_time_that_pyiceberg_cannot_take_fails_the_batch_with_the_remedy(place: Place):
    schema = pa.schema([("moment", pa.timestamp("us", "UTC"))])
    rows = pa.table([pa.array([2**62], pa.int64()).cast(schema.field(0).type)], schema)
    sink = place.started(schema=schema)
    with pytest.raises(ConfigError, match="a time is outside of the years 1 to 9999"):
        sink.write(NO_SPARK, BatchRows(schema, 1, (), (rows,)), 0)


def test_wider_columns_and_comments_of_nested_fields_are_taken(place: Place):
    comment = {b"doc": b"how it is measured"}
    columns = pa.schema([
        ("exact", pa.decimal128(38, 3)), ("pair", pa.struct([pa.field("a", pa.int64(), metadata=comment)])), ("rate", pa.float64()),
    ])  # fmt: skip
    place.create(*columns)
    schema = pa.schema(
        [("exact", pa.decimal128(20, 3)), ("pair", pa.struct([("a", pa.int64())])), ("rate", pa.float32())]
    )
    row = {"exact": Decimal("1.125"), "pair": {"a": 1}, "rate": 0.5}
    sink = place.started(schema=schema)
    sink.write(NO_SPARK, BatchRows(schema, 1, ((0, 1),), (pa.Table.from_pylist([row], schema),)), 0)
    assert place.table().scan().to_arrow().to_pylist() == [row]


def test_a_type_that_iceberg_does_not_have_is_refused_by_its_column(place: Place):
    with pytest.raises(ConfigError, match=r"column 'd' is of type duration\[us\], for which Iceberg has no column"):
        place.sink().check(pa.schema([("d", pa.duration("us"))]))
    for kind in (pa.list_(pa.uint32()), pa.map_(pa.string(), pa.uint32()), pa.map_(pa.uint32(), pa.string())):
        with pytest.raises(ConfigError, match=re.escape(f"column 'u' is of type {kind}")):
            place.sink().check(pa.schema([("u", kind)]))


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
    opened(sink).write(NO_SPARK, numbers(1), 0)
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
