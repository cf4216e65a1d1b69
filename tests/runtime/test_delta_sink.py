"""A table of Delta Lake as output: a batch is there once or not at all, whatever happens to the drivers and beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from tests.checkout import ROOT
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, VERSIONS, numbers, of
from tests.runtime.table_histories import Interposed
from tests.runtime.table_places import DeltaPlace as Place
from tests.runtime.table_places import write_delta as write
from tests.servers import s3

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.delta import Delta
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.types import CheckpointError, ConfigError

PROPERTY = "skypane.batches.q.output"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def interposed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Interposed:
    return place.interposed(monkeypatch)


def test_each_commit_names_its_query_and_its_batch(place: Place):
    sink = place.started(driver="driver-1")
    sink.write(NO_SPARK, numbers(1), 0)
    last, start, _ = place.table().history()
    named = [{name: one[name] for name in one if name.startswith("skypane")} for one in (start, last)]
    whose = {"skypane.query": "q", "skypane.role": "output", "skypane.driver": "driver-1"}
    assert named == [whose, whose | {"skypane.batch": "0"}]
    assert place.table().transaction_version(PROPERTY) == 0


def test_a_commit_that_is_sent_twice_is_there_once(place: Place, interposed: Interposed):
    """Delta refuses the second one, as the first has set the same transaction."""

    def sent_twice(commit: Callable[[], Any]) -> Any:
        state = place.table()
        commit()
        with pytest.raises(CommitFailedError, match="Concurrent transaction"):
            write(
                state, numbers(1).table(), mode="append",
                commit_properties=CommitProperties(app_transactions=[Transaction(PROPERTY, 0)]),
            )  # fmt: skip

    sink = place.started()
    interposed.step = sent_twice
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


def test_a_batch_follows_the_rows_that_another_writer_adds_meanwhile(place: Place, interposed: Interposed):
    """Without a second try: rows that are added do not come in each other's way."""
    sink = place.started()

    def others_write(commit: Callable[[], Any]) -> Any:
        place.foreign(-1)
        return commit()

    interposed.step = others_write
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [-1, 1]
    assert len([*Path(place.path).glob("*.parquet")]) == 2


def test_a_client_that_always_refuses_fails_the_batch_which_comes_again(place: Place, interposed: Interposed):
    sink = Delta(place.path, timeout="100 milliseconds")
    sink.check(SCHEMA)
    sink.open(QueryStart("q"))

    def always(commit: Callable[[], Any]) -> Any:
        interposed.step = always
        return interposed.is_lost(commit)

    interposed.step = always
    with pytest.raises(
        OSError, match=r"^table delta\.`\S+` did not take batch 0 \(other writers committed first, .* for 0.1 s, .*502"
    ):
        sink.write(NO_SPARK, numbers(1), 0)
    with pytest.raises(ConfigError, match=r"cannot be used \(other writers committed first.*; start the query again"):
        sink.open(QueryStart("q", driver="driver-2"))
    interposed.step = None
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@pytest.mark.long
def test_queries_that_write_into_one_table_at_once_lose_and_double_nothing(place: Place):
    sinks = [place.started(query=f"q{at}") for at in range(3)]

    def write_all(at: int) -> None:
        for batch in range(5):
            sinks[at].write(NO_SPARK, numbers(10 * batch + at), batch)

    with ThreadPoolExecutor(len(sinks)) as threads:
        list(threads.map(write_all, range(len(sinks))))
    assert place.rows() == sorted(10 * batch + at for batch in range(5) for at in range(3))


@pytest.mark.long
def test_hundreds_of_batches_survive_the_checkpoints_of_the_log(place: Place):
    """The log is cut at checkpoints of a hundred commits; transactions and the property are in them."""
    place.create(*SCHEMA, configuration={"delta.logRetentionDuration": "interval 0 seconds"})
    sink = place.started()
    for batch in range(210):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.checkpoint()
    assert not (Path(place.path) / "_delta_log" / f"{1:020}.json").exists()
    second = place.started(209, driver="driver-2")
    for batch in (209, 210):
        second.write(NO_SPARK, numbers(batch), batch)
    with pytest.raises(CheckpointError, match="batch 210 comes again with other rows"):
        second.write(NO_SPARK, numbers(0), 210)
    assert place.rows() == list(range(211))


@pytest.mark.parametrize("maintained", ["compact", "checkpoint"])
def test_maintenance_between_two_starts_hides_no_batch(place: Place, maintained: str):
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.foreign(-1)
    place.maintenance[maintained]()
    second = place.started(2, driver="driver-2")
    for batch in (2, 3):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize("partition", [None, "city", "window_start"])
def test_a_version_of_a_window_replaces_its_rows_and_an_empty_one_leaves_none(place: Place, partition: str | None):
    """In a table of the sink, and in tables with partitions, and one more column, that were there before."""
    if partition is not None:
        others = [pa.field(name, VERSIONS.field(name).type) for name in ("window_end", "city", "n", "version")]
        place.create(pa.field("note", pa.string()), *others, VERSIONS.field("window_start"), partition_by=partition)
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (0, 0, False, "Rome", 2), (1, 0, False, "Oslo", 3)), 0)
    again = of(VERSIONS, (0, 1, False, "Rome", 4), (1, 1, True, None, None), (2, 0, False, "Oslo", 9))
    for _ in range(2):
        sink.write(NO_SPARK, again, 1)
    assert place.rows("city", "n", "version") == [("Oslo", 9, 0), ("Rome", 4, 1)]
    sink.write(NO_SPARK, of(VERSIONS, (0, 2, True, None, None), (2, 1, True, None, None)), 2)
    assert place.rows() == []
    sink.write(NO_SPARK, of(VERSIONS, (1, 2, False, "Bern", 5)), 3)
    assert place.rows("city", "n", "version") == [("Bern", 5, 2)]


def test_a_version_that_meets_a_compaction_replaces_its_rows(place: Place, interposed: Interposed):
    sink = place.started(schema=VERSIONS)
    for batch in range(3):
        sink.write(NO_SPARK, of(VERSIONS, (batch, 0, False, "Oslo", batch)), batch)

    def compacted(commit: Callable[[], Any]) -> Any:
        place.table().optimize.compact()
        return commit()

    interposed.step = compacted
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 3)
    assert place.rows() == [1, 2, 7]


def test_queries_and_roles_have_separate_batches(place: Place):
    for claim in ({"query": "q"}, {"query": "another"}, {"query": "q", "role": "late"}):
        place.started(**claim).write(NO_SPARK, numbers(1), 0)  # type: ignore[arg-type]
    assert place.rows() == [1, 1, 1]


def test_a_table_and_a_checkpoint_that_are_both_taken_back_continue_together(
    place: Place, caplog: pytest.LogCaptureFixture
):
    """That the property is gone is reported in the log."""
    first = place.started()
    for batch in range(3):
        first.write(NO_SPARK, numbers(batch), batch)
    place.table().restore(2)  # the commit of batch 0, after those of the creation and of the start
    assert place.rows() == [0]
    with pytest.raises(CheckpointError, match=rf"rolled back, too, remove its property '{PROPERTY}'"):
        place.started(1)
    remove_property(place)
    second = place.started(1, driver="driver-2")
    assert f"no property {PROPERTY}, the note of this query's batches: batch 1 is written" in caplog.text
    for batch in (1, 2):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [0, 1, 2]


def remove_property(place: Place) -> None:
    """Remove the note as ALTER TABLE ... UNSET TBLPROPERTIES does, which delta-rs has no function for."""
    log = Path(place.path) / "_delta_log"
    last = f"{place.table().version():020}"
    found = place.table().metadata()
    others = {name: text for name, text in found.configuration.items() if name != PROPERTY}
    schema = place.table().schema().to_json()
    metadata = {
        "id": str(found.id), "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
        "partitionColumns": found.partition_columns, "configuration": others, "createdTime": found.created_time,
    }  # fmt: skip
    (log / f"{int(last) + 1:020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")


def test_a_table_that_was_removed_and_made_again_under_a_running_query_is_refused(place: Place):
    """Also where the new one has as many commits as the old one had."""
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    shutil.rmtree(place.path)
    place.create(*SCHEMA)
    for number in range(4):
        place.foreign(-number)
    with pytest.raises(CheckpointError, match=rf"lost its property '{PROPERTY}'"):
        sink.write(NO_SPARK, numbers(3), 3)
    assert place.rows() == [-3, -2, -1, 0]


@pytest.mark.parametrize("text", ['{"next_batch": 3', "[]", '{"query": "q", "role": "output", "later": 1}'])
@pytest.mark.parametrize("query", ["q", "another"])
def test_a_property_that_cannot_be_read_is_named(place: Place, query: str, text: str):
    """Also that of another query, which a later version of skypane may have written."""
    place.started()
    place.table().alter.set_table_properties({PROPERTY: text}, raise_if_not_exists=False)
    with pytest.raises(CheckpointError, match=rf"table delta\.`\S+` has the property '{PROPERTY}', which"):
        place.started(query=query, driver="driver-2")


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "yes": (pa.bool_(), True),
    "byte": (pa.int8(), -7),
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
    'a.b-100%"sure"`': (pa.int64(), 1),
}  # fmt: skip


def test_values_of_every_type_and_nulls_come_back(place: Place):
    schema = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])
    rows = pa.Table.from_pylist([{name: value for name, (_, value) in TYPES.items()}, {}], schema)
    for batch in range(2):  # the second into a table that is there
        sink = place.started(batch, schema=schema, driver=f"driver-{batch}")
        sink.write(NO_SPARK, BatchRows(schema, 2, ((0, 2),), (rows,)), batch)
    assert place.read().to_pylist() == rows.to_pylist() * 2


def test_moments_are_the_same_whatever_their_zone_and_however_far(place: Place):
    schema = pa.schema([("moment", pa.timestamp("us", "Europe/Oslo"))])
    micros = [1_000_001, 2**62, -(2**62)]
    rows = pa.table([pa.array(micros, pa.int64()).cast(schema.field(0).type)], schema)
    place.started(schema=schema).write(NO_SPARK, BatchRows(schema, 3, (), (rows,)), 0)
    moments = place.read()["moment"]
    assert (moments.type, moments.cast(pa.int64()).to_pylist()) == (pa.timestamp("us", "UTC"), micros)


BOUNDS = (SCHEMA.field("window_start"), SCHEMA.field("window_end"))
CITY, N = SCHEMA.field("city"), SCHEMA.field("n")


@pytest.mark.parametrize(("columns", "message"), [
    ((BOUNDS[1], CITY, N),
     r"has no column 'window_start', which the rows have: ALTER TABLE delta\.`\S+` ADD COLUMNS \(`window_start` timestamp\)"),
    ((*BOUNDS, pa.field("city", pa.int64()), N), "column 'city' is int64, and the rows have string: cast it in the query"),
    ((pa.field("window_start", pa.timestamp("us")), BOUNDS[1], CITY, N), "column 'window_start' is timestamp"),
    ((*BOUNDS, CITY, pa.field("n", pa.int32())), "column 'n' is int32, and the rows have int64"),
    ((*BOUNDS, CITY, N, pa.field("id", pa.int64(), nullable=False)), "has the column 'id', which must have a value in"),
])  # fmt: skip
def test_a_table_that_cannot_take_the_rows_is_refused_at_the_start(
    place: Place, columns: tuple[pa.Field, ...], message: str
):
    place.create(*columns)
    with pytest.raises(ConfigError, match=message):
        place.started()
    assert place.table().version() == 0


@pytest.mark.parametrize(("rows", "column"), [
    (pa.decimal128(20, 3), pa.decimal128(38, 0)),
    (pa.decimal128(20, 3), pa.decimal128(10, 3)),
    (pa.binary(), pa.string()),
    (pa.float64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.list_(pa.string()), pa.list_(pa.int64())),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
    (pa.struct([("a", pa.int64())]), pa.struct([pa.field("a", pa.int64(), nullable=False)])),
    (pa.struct([("a", pa.int64())]), pa.struct([("b", pa.int64())])),
])  # fmt: skip
def test_a_column_that_does_not_hold_the_values_is_refused_at_the_start(
    place: Place, rows: pa.DataType, column: pa.DataType
):
    place.create(pa.field("x", column))
    with pytest.raises(ConfigError, match=r"column 'x' is .*, and the rows have .*: cast it in the query"):
        place.started(schema=pa.schema([("x", rows)]))


@pytest.mark.parametrize(("rows", "column", "value"), [
    (pa.int16(), pa.int64(), 7),
    (pa.float32(), pa.float64(), 0.5),
    (pa.decimal128(20, 3), pa.decimal128(38, 3), Decimal("1.125")),
    (pa.large_string(), pa.string(), "a"),
    (pa.large_list(pa.int32()), pa.list_(pa.int64()), [1, None]),
    (pa.struct([("b", pa.int8()), ("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.int16())]), {"a": 1, "b": 2}),
])  # fmt: skip
def test_a_wider_column_is_taken(place: Place, rows: pa.DataType, column: pa.DataType, value: Any):
    place.create(pa.field("x", column))
    schema = pa.schema([("x", rows)])
    table = pa.Table.from_pylist([{"x": value}], schema)
    place.started(schema=schema).write(NO_SPARK, BatchRows(schema, 1, ((0, 1),), (table,)), 0)
    assert place.read().to_pylist() == [{"x": value}]


def test_a_column_may_need_values(place: Place):
    place.create(*BOUNDS, pa.field("city", pa.string(), nullable=False), N, pa.field("x", pa.int32()))
    sink = place.started()
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows("city", "n", "x") == [("Oslo", 1, None)]
    with pytest.raises(ConfigError, match=r"column 'city' must have a value in each row .*DROP NOT NULL"):
        sink.write(NO_SPARK, of(SCHEMA, (0, None, 5)), 1)


def test_what_delta_does_not_have_is_refused_by_its_column(place: Place):
    sink = Delta(place.path)
    with pytest.raises(ConfigError, match=r"column 'd' is of type duration\[us\], for which Delta has no column"):
        sink.check(pa.schema([("d", pa.duration("us"))]))
    with pytest.raises(ConfigError, match=r"the column name 'a b' has one of the signs"):
        sink.check(pa.schema([("a b", pa.int64())]))


def test_partitions_by_a_column_that_the_rows_lack_are_refused(place: Place):
    place.create(*SCHEMA, pa.field("day", pa.date32()), partition_by="day")
    with pytest.raises(ConfigError, match="is partitioned by the column 'day', which the rows do not have"):
        place.started()


def test_a_folder_with_other_files_is_refused(place: Place):
    """VACUUM would delete them."""
    folder = Path(place.path)
    folder.mkdir()
    (folder / "part-0.parquet").touch()
    with pytest.raises(ConfigError, match=r"its folder has other files, such as part-0\.parquet: name an empty folder"):
        place.started()
    assert [one.name for one in folder.iterdir()] == ["part-0.parquet"]


def test_a_driver_that_was_killed_while_it_created_the_table_blocks_no_other(place: Place):
    (Path(place.path) / "_delta_log").mkdir(parents=True)
    place.started().write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"path": ""}, "path must be a path or a URI"),
    ({"path": "hdfs://host/x"}, "must be a local folder, or one of s3://, gs:// or abfss://"),
    ({"path": "100%20"}, "has '%20' in it, which the client of Delta does not take"),
    ({"path": "a[1]"}, r"has '\[' in it"),
    ({"path": "s3://key:hunter2@bucket/x"}, "has a login"),
    ({"timeout": "0 s"}, "timeout must be longer than 0"),
    ({"options": ["hunter2"]}, "options must be a mapping"),
    ({"options": {"a": {"token": "hunter2"}}}, "option a must be a text, a number, True or False"),
    ({"options": {"aws_secret_access_key": "hunter2"}}, r'option aws_secret_access_key must be "\$NAME"'),
    ({"options": {"AWS_SESSION_TOKEN": "hunter2"}}, r'option AWS_SESSION_TOKEN must be "\$NAME"'),
    ({"options": {"proxy_url": "http://me:hunter2@host"}}, r'option proxy_url must be "\$NAME"'),
    ({"options": {"aws_endpoint_url": "https://me:hunter2@host"}}, "is https://.*with a password"),
])  # fmt: skip
def test_wrong_arguments_are_refused_and_no_secret_is_shown(arguments: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message) as raised:
        Delta(**{"path": "answers", **arguments})
    assert "hunter2" not in str(raised.value)


def test_the_folder_does_not_depend_on_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nor on signs in its name that are others in an address."""
    monkeypatch.chdir(tmp_path)
    sink = Delta("best of 100% # ü")
    monkeypatch.chdir("/")
    sink.check(SCHEMA)
    sink.open(QueryStart("q"))
    sink.write(NO_SPARK, numbers(1), 0)
    assert (tmp_path / "best of 100% # ü" / "_delta_log").is_dir()
    assert DeltaTable(tmp_path / "best of 100% # ü").to_pyarrow_table()["n"].to_pylist() == [1]


def test_a_folder_that_cannot_be_used_is_named_with_the_remedy(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"table delta\.`\S+/file/answers` cannot be used \(.*\); check the path"
    ) as raised:
        Place(tmp_path / "file").started()
    assert "<unknown>" not in str(raised.value)


def test_a_disk_that_refuses_fails_the_batch_which_comes_again(place: Place):
    sink = Delta(place.path, timeout="1 second")
    sink.check(SCHEMA)
    sink.open(QueryStart("q"))
    next_commit = Path(place.path) / "_delta_log" / f"{2:020}.json"
    next_commit.mkdir()
    with pytest.raises(OSError, match=r"did not take batch 0 .*it has none of its rows, or all"):
        sink.write(NO_SPARK, numbers(1), 0)
    next_commit.rmdir()
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@pytest.mark.long
def test_a_table_in_an_object_store_has_each_batch_once(monkeypatch: pytest.MonkeyPatch):
    """Its address and its login are options of the sink; the secret is in the environment, and no error shows it."""
    with s3.running() as port:
        found = s3.environment(port)
        options = {"aws_endpoint_url": found["AWS_ENDPOINT_URL"], "aws_allow_http": True, "aws_region": "us-east-1",
                   "aws_access_key_id": "$SKYPANE_TEST_KEY", "aws_secret_access_key": "$SKYPANE_TEST_SECRET"}  # fmt: skip
        sink = Delta(f"s3a://{s3.BUCKET}/best/answers", options=options, timeout="1 second")
        sink.check(SCHEMA)
        with pytest.raises(ConfigError, match="environment variable SKYPANE_TEST_KEY, which is not set"):
            sink.open(QueryStart("q"))
        monkeypatch.setenv("SKYPANE_TEST_KEY", found["AWS_ACCESS_KEY_ID"])
        monkeypatch.setenv("SKYPANE_TEST_SECRET", found["AWS_SECRET_ACCESS_KEY"])
        sink.open(QueryStart("q", "driver-1"))
        for batch in (0, 1, 1):
            sink.write(NO_SPARK, numbers(batch), batch)
        plain = {**{name: str(value).lower() for name, value in options.items()},
                 "aws_access_key_id": found["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": found["AWS_SECRET_ACCESS_KEY"]}  # fmt: skip
        table = DeltaTable(f"s3://{s3.BUCKET}/best/answers", storage_options=plain)
        assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [0, 1]
        second = replace(sink)
        second.check(SCHEMA)
        second.open(QueryStart("q", "driver-2", next_batch=1))
        with pytest.raises(CheckpointError, match="taken over"):
            sink.write(NO_SPARK, numbers(2), 2)
    with pytest.raises(OSError, match=r"did not take batch 2") as raised:
        second.write(NO_SPARK, numbers(2), 2)
    assert found["AWS_SECRET_ACCESS_KEY"] not in f"{raised.value} {sink!r}"


@pytest.mark.slow
def test_kills_at_any_line_leave_each_batch_once(tmp_path: Path):
    """Each driver is killed at a later line of the sink or of delta-rs's Python, with a table of its own; the next one finishes."""
    lines = int(driven(tmp_path / "whole").stdout)
    for line in range(0, lines - lines // 25, lines // 25):
        folder = tmp_path / str(line)
        assert driven(folder, line).returncode == -signal.SIGKILL
        assert driven(folder).returncode == 0
        assert Place(folder).rows() == list(range(30)), line


def driven(folder: Path, line: int = 10**9) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.runtime.delta_sink_driver", str(folder), str(line)]
    return subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True, timeout=120, check=False
    )
