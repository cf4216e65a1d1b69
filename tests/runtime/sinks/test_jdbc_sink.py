"""A table of a database as output: a batch is there once or not at all, and amended windows are there as they are now."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from psycopg import OperationalError
from tests.runtime.database_places import DATABASES, DatabasePlace, database, on_server
from tests.runtime.rows_of_batches import CHANGES, NO_SPARK, SCHEMA, UPDATES, VERSIONS, numbers, of
from tests.runtime.sinks.opening import opened

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.jdbc import Jdbc
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.runtime.spark.sinks.table_writer import TableWriter
from skypane.types import CheckpointError, ConfigError

COLUMNS_OF = {
    True: "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('{}') AND attnum > 0",
    False: "SELECT name FROM pragma_table_info('{}')",
}
"""What lists the columns of a table, on a server or in a file."""


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> DatabasePlace:
    return database(request.param, request, tmp_path)


def test_rows_of_a_batch_that_fails_are_never_there(place: DatabasePlace, monkeypatch: pytest.MonkeyPatch):
    sink = place.started()
    sink.write(NO_SPARK, numbers(1), 0)
    with monkeypatch.context() as patched:
        patched.setattr(TableWriter, "_set_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sink.write(NO_SPARK, numbers(2, 3), 1)
    assert place.rows() == [1]
    place.started(1, driver="driver-2").write(NO_SPARK, numbers(2, 3), 1)
    assert place.rows() == [1, 2, 3]


def test_a_row_replaces_the_one_with_its_key_also_if_a_part_of_it_is_null(place: DatabasePlace):
    sink = place.started(key="window_start, city")
    sink.write(NO_SPARK, of(SCHEMA, (0, "Oslo", 1), (0, None, 2), (1, None, 3)), 0)
    sink.write(NO_SPARK, of(SCHEMA, (0, "Oslo", 4), (0, None, 5), (0, "Rome", 6)), 1)
    assert place.rows() == [3, 4, 5, 6]


def test_a_key_without_the_window_keeps_the_newest_row_of_each_key(place: DatabasePlace):
    sink = place.started(key="city")
    sink.write(NO_SPARK, of(SCHEMA, (0, "Oslo", 1), (0, None, 2), (1, "Oslo", 3), (1, None, 4), (1, "Rome", 5)), 0)
    assert place.rows() == [3, 4, 5]


def test_rows_of_a_window_that_a_key_does_not_distinguish_are_refused(place: DatabasePlace):
    sink = place.started(key="window_start,city")
    with pytest.raises(
        ConfigError, match=r"several rows of batch 0 have the key window_start='1970-01-01T00:00:00\+00"
    ):
        sink.write(NO_SPARK, of(SCHEMA, (0, "Oslo", 1), (0, "Oslo", 2)), 0)
    assert place.rows() == []


@pytest.mark.parametrize("key", ["", "window_start,city"])
def test_a_version_of_a_window_replaces_its_rows_and_an_empty_one_leaves_none(place: DatabasePlace, key: str):
    sink = place.started(key=key, schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (0, 0, False, "Rome", 2), (1, 0, False, "Oslo", 3)), 0)
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 4), (1, 1, True, None, None)), 1)
    assert place.rows("city", "n", "version") == [("Rome", 4, 1)]
    sink.write(NO_SPARK, of(VERSIONS, (1, 2, False, "Bern", 5)), 2)
    assert place.rows("city", "n", "version") == [("Bern", 5, 2), ("Rome", 4, 1)]


def test_a_window_whose_rows_are_in_several_files_is_replaced_once(place: DatabasePlace, tmp_path: Path):
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1)), 0)
    store = DocumentStore.at(str(tmp_path))
    for name, number in (("a", 2), ("b", 3)):
        store.write_parquet(name, VERSIONS, of(VERSIONS, (0, 1, False, "Oslo", number)).tables)
    files = replace(of(VERSIONS, *[(0, 1, False, "Oslo", 2)] * 2), tables=(), store=store, files=("a", "b"))
    sink.write(NO_SPARK, files, 1)
    assert place.rows() == [2, 3]


def test_changes_of_windows_are_applied_by_key_also_from_files_of_several_workers(place: DatabasePlace, tmp_path: Path):
    """A worker adds the row of a key that another one removes."""
    sink = place.started(key="window_start,city", schema=CHANGES)
    sink.write(NO_SPARK, of(CHANGES, (0, 0, "ADD", "Oslo", 1), (0, 0, "ADD", "Rome", 2), (0, 0, "ADD", None, 3)), 0)
    store = DocumentStore.at(str(tmp_path))
    files: dict[str, list[tuple[Any, ...]]] = {
        "a": [(0, 1, "DEL", None, 3), (0, 1, "ADD", "Oslo", 4)],
        "b": [(0, 1, "DEL", "Oslo", 1), (0, 1, "ADD", "Bern", 5)],
    }
    for name, rows in files.items():
        store.write_parquet(name, CHANGES, of(CHANGES, *rows).tables)
    whole = of(CHANGES, *files["a"], *files["b"])
    for _ in range(2):
        sink.write(NO_SPARK, replace(whole, tables=(), store=store, files=tuple(files)), 1)
    assert place.rows("city", "n", "version") == [("Bern", 5, 1), ("Oslo", 4, 1), ("Rome", 2, 0)]


def test_updates_of_a_front_are_applied_by_key_in_their_order(place: DatabasePlace):
    def updates(*rows: tuple[str, int, int]) -> BatchRows:
        columns = [[row[0] for row in rows], [0] * len(rows), [row[1] for row in rows], [row[2] for row in rows]]
        found = pa.table([pa.array(one, each.type) for one, each in zip(columns, UPDATES, strict=True)], schema=UPDATES)
        return BatchRows(UPDATES, len(rows), (), (found,))

    sink = place.started(key="id", schema=UPDATES)
    sink.write(NO_SPARK, updates(("ADD", 1, 10), ("ADD", 2, 20), ("DEL", 1, 10), ("ADD", 3, 30)), 0)
    assert place.rows("id", "n") == [(2, 20), (3, 30)]
    sink.write(NO_SPARK, updates(("DEL", 2, 20), ("ADD", 2, 21), ("ADD", 1, 11), ("DEL", 1, 11)), 1)
    assert place.rows("id", "n") == [(2, 21), (3, 30)]
    assert "action" not in {name for name, *_ in place.ask(COLUMNS_OF[place.is_server].format(place.table))}


def test_tables_of_a_query_have_separate_batches(place: DatabasePlace):
    place.started().write(NO_SPARK, numbers(1), 0)
    opened(place.sink(table=f"{place.table}_2"), next_batch=1).write(NO_SPARK, numbers(7), 0)
    assert place.ask(f"SELECT n FROM {place.table}_2") == [(7,)]  # noqa: S608


@pytest.mark.parametrize("alone", [{"role": "front"}, {"schema": VERSIONS}, {"schema": CHANGES, "key": "window_start"}])
def test_a_table_from_which_a_query_removes_rows_belongs_to_it(place: DatabasePlace, alone: dict[str, Any]):
    place.started(schema=VERSIONS).write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1)), 0)
    with pytest.raises(
        CheckpointError, match=r"has the output of query q, .* name another table, or, .*skypane_batches"
    ):
        place.started(query="another", **alone)
    assert place.rows() == [1]
    place.started(1, schema=VERSIONS, driver="driver-2").write(NO_SPARK, of(VERSIONS, (0, 1, False, "Oslo", 2)), 1)
    assert place.rows() == [2]


@pytest.mark.parametrize("first", ["output", "front"])
def test_a_table_is_one_under_all_its_names(place: DatabasePlace, first: str):
    names = place.table, f"public.{place.table}" if place.is_server else place.table.upper()
    opened(place.sink(table=names[first == "front"]), role=first).write(NO_SPARK, numbers(1), 0)
    for name in names:
        with pytest.raises(CheckpointError, match=f"table {name} has the {first} of query q, and a front"):
            opened(place.sink(table=name), role="front" if first == "output" else "output")
    assert place.rows() == [1]


def test_a_table_of_the_same_name_in_another_schema_is_another(postgresql: Any):
    place, schema = on_server(postgresql), f"s_{uuid4().hex[:8]}"
    postgresql.ask(f"CREATE SCHEMA {schema}")
    place.started().write(NO_SPARK, numbers(1), 0)
    for name in (f"{schema}.{place.table}", place.table.upper()):
        opened(place.sink(table=name), role="front").write(NO_SPARK, numbers(2), 0)
    assert place.rows() == [1]


def test_a_table_that_holds_a_front_takes_nothing_else(place: DatabasePlace):
    place.started(role="front").write(NO_SPARK, numbers(1), 0)
    with pytest.raises(CheckpointError, match="has the front of query q"):
        place.started()


def test_a_file_that_one_sink_of_two_jobs_names_is_that_of_the_working_folder_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    given = Jdbc("sqlite:here.db", "answers")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    mine = Sinks.of(given).output
    assert isinstance(mine, Jdbc)
    assert str(mine.database) == f"sqlite:{tmp_path}/here.db"


PLAIN = datetime.fromisoformat("2026-01-02T03:04:05.000006")
TYPES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "yes": (pa.bool_(), True, 1),
    "small": (pa.int16(), -7, -7),
    "unsigned": (pa.uint16(), 65_535, 65_535),
    "large": (pa.int64(), -(2**62), -(2**62)),
    "price": (pa.float64(), 0.1, 0.1),
    "rate": (pa.float32(), 0.5, 0.5),
    "exact": (pa.decimal128(20, 3), Decimal("12345678901234567.125"), "12345678901234567.125"),
    "text": (pa.string(), 'a,"b"\n%s', 'a,"b"\n%s'),
    "bytes": (pa.binary(), b"\x00\xff", b"\x00\xff"),
    "day": (pa.date32(), date(2026, 1, 2), "2026-01-02"),
    "plain": (pa.timestamp("us"), PLAIN, PLAIN.isoformat()),
    "list": (pa.list_(pa.int64()), [1, None], "[1, null]"),
    "pair": (pa.struct([("a", pa.string())]), {"a": "ü"}, '{"a": "ü"}'),
}
"""By the name of a column: its type, a value, as PostgreSQL returns it, too, and the value as SQLite returns it."""


def test_values_of_every_type_and_nulls_come_back(place: DatabasePlace):
    schema = pa.schema([(name, kind) for name, (kind, *_) in TYPES.items()])
    rows = pa.Table.from_pylist([{name: value for name, (_, value, *_) in TYPES.items()}, {}], schema)
    sink = place.started(schema=schema)
    sink.write(NO_SPARK, BatchRows(schema, 2, ((0, 2),), (rows,)), 0)
    found = place.ask(f"SELECT {', '.join(TYPES)} FROM {place.table}")  # noqa: S608
    of_place = 1 if place.is_server else 2
    assert set(map(repr, found)) == {repr(tuple(one[of_place] for one in TYPES.values())), repr((None,) * len(TYPES))}


def test_a_time_with_a_zone_is_the_same_moment_whatever_its_zone(place: DatabasePlace):
    schema = pa.schema([("moment", pa.timestamp("us", "Europe/Oslo"))])
    rows = pa.table([pa.array([1_000_001], pa.int64()).cast(schema.field(0).type)], schema)
    place.started(schema=schema).write(NO_SPARK, BatchRows(schema, 1, (), (rows,)), 0)
    same = f"SELECT count(*) FROM {place.table} WHERE moment = '1970-01-01T00:00:01.000001+00:00'"  # noqa: S608
    assert place.ask(same) == [(1,)]


def test_names_that_need_quotes_and_numbers_that_are_none_are_kept(place: DatabasePlace):
    schema = pa.schema([('100% "sure"', pa.float64()), ("select", pa.int64())])
    rows = pa.table([pa.array([float("nan"), float("inf")]), pa.array([1, 2])], schema=schema)
    place.started(schema=schema, key="select").write(NO_SPARK, BatchRows(schema, 2, (), (rows,)), 0)
    found = place.ask(f'SELECT "100% ""sure""" FROM {place.table} ORDER BY "select"')  # noqa: S608
    assert [str(value).lower() for (value,) in found] in (["nan", "inf"], ["nan", "infinity"])


def test_a_table_that_is_there_is_used_and_one_without_a_column_is_refused_with_the_remedy(place: DatabasePlace):
    place.ask(f"CREATE TABLE {place.table} (id integer, city text, n integer, window_start text, window_end text)")
    place.started().write(NO_SPARK, numbers(1), 0)
    assert place.rows("city", "n") == [("Oslo", 1)]
    more = SCHEMA.append(pa.field("total", pa.float64()))
    with pytest.raises(
        ConfigError, match=r"has no column 'total', which the rows have: ALTER TABLE .*ADD COLUMN \"total\" "
    ):
        place.started(1, schema=more)


@pytest.mark.parametrize(("constraint", "key", "found", "message"), [
    ("", "city", [1], r'no unique constraint on its key .*CREATE UNIQUE INDEX ON .* \("city"\)'),
    (', CONSTRAINT "no ON CONFLICT" CHECK (n < 5), UNIQUE (city)', "city", [7],
     r"table \S+ of \S+ refuses batch 0: .*no ON CONFLICT"),
    (", CHECK (n < 5)", "", [1, 7], r"table \S+ of \S+ refuses batch 0: .*constraint"),
], ids=["a key that is none", "with the words of another error", "a value"])  # fmt: skip
def test_what_a_table_refuses_is_named_and_fails_the_batch(
    place: DatabasePlace, constraint: str, key: str, found: list[int], message: str
):
    place.ask(f"CREATE TABLE {place.table} (city text, n integer, window_start text, window_end text{constraint})")
    with pytest.raises(ConfigError, match=message):
        place.started(key=key).write(NO_SPARK, numbers(*found), 0)
    assert place.rows() == []


def test_a_key_is_of_columns_of_the_rows(place: DatabasePlace):
    with pytest.raises(ConfigError, match="key column 'shop' is not a column of the rows, which are window_start, win"):
        place.sink("shop").check(SCHEMA)
    with pytest.raises(ConfigError, match="key must have the column window_start, as a window that is answered again"):
        place.sink("city").check(VERSIONS)
    with pytest.raises(ConfigError, match="key must have the column window_start"):
        place.sink("city").check(CHANGES)
    if place.is_server:
        with pytest.raises(ConfigError, match=r"the name 'ü+' has 64 bytes"):
            place.sink().check(pa.schema([(32 * "ü", pa.int64())]))
    with pytest.raises(ConfigError, match="column 'd' is of type duration"):
        place.sink().check(pa.schema([("d", pa.duration("us"))]))


@pytest.mark.parametrize(("arguments", "message"), [
    ({"url": "mysql://host/db"}, "url must be postgresql://host:5432/database or sqlite:path, got 'mysql://host/db'"),
    ({"url": "postgresql://writer:hunter2@host/db"}, r'has a password, .*options=\{"password": "\$NAME"\}'),
    ({"url": "postgresql://host/db?password=hunter2"}, "has a password"),
    ({"url": "postgresql://host/db?sslmode=require&sslpassword=hunter2"}, r'options=\{"sslpassword": "\$NAME"\}'),
    ({"url": "mysql://host/db?password=hunter2"}, "url must be postgresql"),
    ({"url": "postgresql://host"}, "url must name a database"),
    ({"url": "sqlite:///a.db"}, "url must be"),
    ({"url": "sqlite:a.db", "options": {"user": "x"}}, "options are for PostgreSQL"),
    ({"options": {"password": "hunter2"}}, r'option password must be "\$NAME"'),
    ({"table": ""}, "table must be the name of a table"),
    ({"table": "a..b"}, "table must be the name of a table"),
    ({"table": "s." + 64 * "t"}, "the name 't+' has 64 bytes, and postgresql://host/db keeps 63: choose a shorter one"),
    ({"url": "sqlite:a.db", "table": "main.t"}, "has no schemas: give the name of the table only"),
    ({"timeout": "0 s"}, "timeout must be longer than 0"),
])  # fmt: skip
def test_wrong_arguments_are_refused_and_no_password_is_shown(arguments: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message) as raised:
        Jdbc(**{"url": "postgresql://host/db", "table": "t", **arguments})
    assert "hunter2" not in str(raised.value)


def test_urls_of_java_are_understood(tmp_path: Path):
    assert str(Jdbc("jdbc:postgresql://host:5432/db", "t").database) == "postgresql://host:5432/db"
    assert str(Jdbc(f"jdbc:sqlite:{tmp_path}/a.db", "t").database) == f"sqlite:{tmp_path}/a.db"


def test_an_address_without_a_server_is_refused_with_the_remedy(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"postgresql://127.0.0.1:9/db cannot be used \(.*check the address"):
        Jdbc("postgresql://127.0.0.1:9/db", "t", timeout="2 seconds").open(QueryStart("q"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="cannot be used"):
        Jdbc(f"sqlite:{tmp_path}/folder", "t").open(QueryStart("q"))


def test_a_login_is_from_the_environment(postgresql: Any, monkeypatch: pytest.MonkeyPatch):
    sink = Jdbc(postgresql.url, f"t_{uuid4().hex[:8]}", options=postgresql.login)
    assert "SKYPANE_TEST_PASSWORD" not in repr(sink)
    monkeypatch.delenv("SKYPANE_TEST_PASSWORD")
    with pytest.raises(
        ConfigError, match="option password is in the environment variable SKYPANE_TEST_PASSWORD, which"
    ):
        sink.open(QueryStart("q"))
    monkeypatch.setenv("SKYPANE_TEST_PASSWORD", "wrong")
    with pytest.raises(ConfigError, match=r"cannot be used \(.*password authentication failed"):
        sink.open(QueryStart("q"))


def test_a_schema_of_the_database_holds_its_own_notes(postgresql: Any):
    name = f"s_{uuid4().hex[:8]}"
    postgresql.ask(f"CREATE SCHEMA {name}")
    place = on_server(postgresql, f"{name}.answers")
    place.started().write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]
    assert place.ask(f"SELECT next_batch FROM {name}.skypane_batches") == [(1,)]  # noqa: S608


def test_queries_that_start_at_once_create_each_table_once(postgresql: Any):
    """The second one begins before the first one has committed its tables, and waits for them."""
    name = f"s_{uuid4().hex[:8]}"
    postgresql.ask(f"CREATE SCHEMA {name}")
    place = on_server(postgresql, f"{name}.answers")
    second: list[Future[Jdbc]] = []

    def waiting() -> bool:
        return bool(postgresql.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))

    def check() -> None:
        second.append(threads.submit(place.started, query="second"))
        limit = time.monotonic() + 60
        while not waiting() and not second[0].done():
            assert time.monotonic() < limit

    with ThreadPoolExecutor(1) as threads:
        place.started(query="first", check=check).write(NO_SPARK, numbers(1), 0)
        second[0].result(60).write(NO_SPARK, numbers(2), 0)
    assert place.rows() == [1, 2]


def test_a_driver_that_is_suspended_in_a_batch_gives_way_to_the_next(postgresql: Any, monkeypatch: pytest.MonkeyPatch):
    """The server ends its transaction, in which no statement comes; what it wrote is gone when it resumes."""
    place = on_server(postgresql)
    first = opened(place.sink(timeout="1 second"))

    def suspended(*_: object) -> None:
        monkeypatch.undo()
        second = place.started(driver="driver-2")  # it waits until the server has ended the other's transaction
        second.write(NO_SPARK, numbers(1), 0)

    monkeypatch.setattr(TableWriter, "_set_note", suspended)
    with pytest.raises(OSError, match=r"did not take batch 0 .*it has none of its rows, or all"):
        first.write(NO_SPARK, numbers(2), 0)
    assert place.rows() == [1]


def test_a_server_that_does_not_answer_fails_the_batch_which_comes_again(postgresql: Any):
    place = on_server(postgresql)
    sink = opened(place.sink(timeout="1 second"))
    with postgresql.silent(), pytest.raises(OSError, match=r"did not take batch 0 .*timeout expired"):
        sink.write(NO_SPARK, numbers(1), 0)
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


def test_a_batch_whose_connection_ends_before_its_commit_is_not_taken_for_written(
    postgresql: Any, monkeypatch: pytest.MonkeyPatch
):
    place = on_server(postgresql)
    sink = place.started()

    def ended(_: object, cursor: Any, *__: object) -> None:
        with suppress(OperationalError):
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with monkeypatch.context() as patched:
        patched.setattr(TableWriter, "_set_note", ended)
        with pytest.raises(OSError, match="did not take batch 0"):
            sink.write(NO_SPARK, numbers(1), 0)
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]
