"""A recording gives the same rows whatever file it is in and however they are cut."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.spark.sources.recordings import Recording, write_recording
from skypane.types import ConfigError

START = datetime(2013, 1, 1, tzinfo=UTC)
KINDS = ("arrow", "parquet", "csv")


def table_of(seconds):
    arrivals = pa.array([START + timedelta(seconds=s) for s in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table({"arrived": arrivals, "row": pa.array(range(len(seconds)), pa.int64())})


def written(folder, table, kind="arrow", group=7):
    path = folder / f"rows.{kind}"
    match kind:
        case "arrow":
            write_recording(table, path)
        case "parquet":
            pq.write_table(table, path, row_group_size=group)
        case "csv":
            pyarrow.csv.write_csv(table, path)
    return Recording(str(path), "arrived")


def rows(recording, start, end):
    return [row for batch in recording.slice(start, end) for row in batch.column("row").to_pylist()]


@pytest.fixture(params=KINDS)
def thirty(request, tmp_path):
    return written(tmp_path, table_of(range(30)), request.param)


@given(st.integers(0, 30), st.integers(0, 30))
def test_any_rows_of_any_file(tmp_path_factory, start, end):
    for kind in KINDS:
        folder = tmp_path_factory.getbasetemp() / f"any-{kind}"
        recording = Recording(str(folder / f"rows.{kind}"), "arrived")
        if not folder.exists():
            folder.mkdir()
            written(folder, table_of(range(30)), kind)
        assert rows(recording, start, end) == list(range(start, end))


def test_the_schema_is_one_that_spark_takes(thirty):
    assert thirty.schema == pa.schema([("arrived", pa.timestamp("us", "UTC")), ("row", pa.int64())])
    assert {batch.schema for batch in thirty.slice(3, 20)} == {thirty.schema}
    assert thirty.row_count == 30


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(sorted), st.integers(0, 30), st.integers(0, 10**12))
def test_due_rows_are_those_whose_time_has_come(tmp_path_factory, seconds, start, elapsed):
    recording = written(tmp_path_factory.mktemp("due"), table_of(seconds))
    clock = seconds[min(start, len(seconds) - 1)] * 10**6 + elapsed
    expected = len(seconds) if start >= len(seconds) else sum(1 for s in seconds if s * 10**6 <= clock)
    assert recording.due(start, elapsed) == expected


def test_a_time_beyond_all_times_is_the_end(thirty):
    assert thirty.due(0, 10**30) == 30


def test_nanoseconds_dictionaries_and_required_columns_become_plain(tmp_path):
    table = pa.table(
        [pa.array([1_001, 2_002], pa.timestamp("ns")), pa.array(["a", "b"]).dictionary_encode()],
        schema=pa.schema(
            [
                pa.field("arrived", pa.timestamp("ns"), nullable=False),
                pa.field("row", pa.dictionary(pa.int32(), pa.string())),
            ]
        ),
    )
    recording = written(tmp_path, table, "parquet")
    assert recording.schema == pa.schema([("arrived", pa.timestamp("us")), ("row", pa.string())])
    (batch,) = recording.slice(0, 2)
    assert batch.column("arrived").cast(pa.int64()).to_pylist() == [1, 2]
    assert recording.arrivals.tolist() == [1, 2]


def test_arrivals_may_be_microseconds(tmp_path):
    recording = written(tmp_path, pa.table({"arrived": np.array([3, 5, 5]), "row": [0, 1, 2]}), "parquet")
    assert [recording.due(0, elapsed) for elapsed in (0, 1, 2)] == [1, 1, 3]


def test_a_task_carries_the_path_and_not_the_rows(tmp_path):
    recording = written(tmp_path, table_of(range(5000)))
    assert recording.arrivals.size == 5000
    assert len(pickle.dumps(recording)) < 500
    assert pickle.loads(pickle.dumps(recording)) == recording  # noqa: S301


def test_a_file_that_is_written_again_is_read_again(tmp_path):
    assert written(tmp_path, table_of(range(3))).row_count == 3
    assert written(tmp_path, table_of(range(5))).row_count == 5


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (pa.array([3, 1], pa.timestamp("us")), r"rows of .*rows.parquet are not in ascending order of 'arrived'"),
        (pa.array([3, None], pa.timestamp("us")), r"column 'arrived' of .*rows.parquet has 1 nulls; arrival times"),
        (pa.array(["a", "b"]), r"column 'arrived' of .* is string; it must be a timestamp, or int64 microseconds"),
    ],
)
def test_unusable_arrivals_are_refused(tmp_path, column, complaint):
    with pytest.raises(ConfigError, match=complaint):
        _ = written(tmp_path, pa.table({"arrived": column}), "parquet").arrivals


def test_an_unknown_arrival_column_is_reported_with_a_near_one(tmp_path):
    path = written(tmp_path, table_of([1])).path
    with pytest.raises(ConfigError, match="column 'arived' does not exist; did you mean 'arrived'"):
        _ = Recording(path, "arived").arrivals
    with pytest.raises(ConfigError, match="needs option arrival, the column with its times"):
        _ = Recording(path).arrivals


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("rows.json", b"{}", "its ending '.json' is unknown"),
        ("rows.parquet", b"nonsense", "cannot read .*rows.parquet to replay it: Parquet"),
        ("rows.arrow", b"nonsense", "cannot read .*rows.arrow to replay it: "),
        ("rows.csv", b"a,b\n1,2,3\n", "cannot read .*rows.csv to replay it: CSV"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, complaint):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        _ = Recording(str(path)).row_count


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"cannot read nowhere\.arrow to replay it: No such file or directory"):
        _ = Recording("nowhere.arrow").row_count


def test_a_damaged_row_group_is_named_with_its_rows_and_its_file(tmp_path):
    table = table_of(range(4_000)).append_column("noise", pa.array(np.random.default_rng(1).random(4_000)))
    recording = written(tmp_path, table, "parquet", group=2_000)
    path = tmp_path / "rows.parquet"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4_000] = b"\xff" * 4_000
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"cannot read rows 0 to 4000 of {path}: "):
        list(recording.slice(0, 4_000))
