"""A table of Delta Lake as output: a batch is there once or not at all, whatever happens to the drivers and beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, numbers
from tests.runtime.sinks.opening import opened
from tests.runtime.table_histories import Interposed
from tests.runtime.table_places import PROPERTY
from tests.runtime.table_places import DeltaPlace as Place
from tests.runtime.table_places import write_delta as write
from tests.servers import s3

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.delta import Delta
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.types import CheckpointError, ConfigError


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


def test_a_client_that_always_refuses_fails_the_batch_which_comes_again(place: Place, interposed: Interposed):
    sink = opened(Delta(place.path, timeout="100 milliseconds"))

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


@pytest.mark.slow
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


def test_what_delta_does_not_have_is_refused_by_its_column(place: Place):
    sink = Delta(place.path)
    with pytest.raises(ConfigError, match=r"column 'd' is of type duration\[us\], for which Delta has no column"):
        sink.check(pa.schema([("d", pa.duration("us"))]))
    with pytest.raises(ConfigError, match=r"the column name 'a b' has one of the signs"):
        sink.check(pa.schema([("a b", pa.int64())]))


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
    opened(sink).write(NO_SPARK, numbers(1), 0)
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
    sink = opened(Delta(place.path, timeout="1 second"))
    next_commit = Path(place.path) / "_delta_log" / f"{2:020}.json"
    next_commit.mkdir()
    with pytest.raises(OSError, match=r"did not take batch 0 .*it has none of its rows, or all"):
        sink.write(NO_SPARK, numbers(1), 0)
    next_commit.rmdir()
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


@pytest.mark.long
@pytest.mark.slow
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
        second = opened(replace(sink), "driver-2", 1)
        with pytest.raises(CheckpointError, match="taken over"):
            sink.write(NO_SPARK, numbers(2), 2)
    with pytest.raises(OSError, match=r"did not take batch 2") as raised:
        second.write(NO_SPARK, numbers(2), 2)
    assert found["AWS_SECRET_ACCESS_KEY"] not in f"{raised.value} {sink!r}"
