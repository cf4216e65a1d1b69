"""A file's columns come in the order of arrival, each in its role; what cannot be used is named."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import skypane as sp
from skypane.describing.columns import ColumnRoles, RecordedStream, load, stream_of
from skypane.types import BadInputError, ConfigError

ROWS = pa.table(
    {
        "made": pa.array([5, 2, 9, 1], pa.timestamp("us", "UTC")),
        "came": pa.array([7, 6, 9, 8], pa.timestamp("us", "UTC")),
        "cab": ["a", "b", None, "a"],
        "price": [1.0, float("nan"), 3.0, 4.0],
        "rating": pa.array([1, 2, 3, None], pa.int64()),
    }
)
ALL = ColumnRoles("made", "came", "cab", "cab", sp.low("price") * sp.high("rating"))


def written(folder, kind):
    path = folder / f"rows.{kind}"
    match kind:
        case "parquet":
            pq.write_table(ROWS, path)
        case "csv":
            stamps = ROWS.set_column(0, "made", ROWS["made"].cast(pa.int64()))
            pyarrow.csv.write_csv(stamps.set_column(1, "came", ROWS["came"].cast(pa.int64())), path)
        case "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, ROWS.schema) as writer:
                writer.write_table(ROWS)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_rows_come_in_the_order_of_arrival(tmp_path, kind):
    stream = load(written(tmp_path, kind), ALL)
    assert stream.event.tolist() == [2, 5, 1, 9]
    assert stream.arrival is not None
    assert stream.arrival.tolist() == [6, 7, 8, 9]
    assert stream.delay.tolist() == [4, 2, 7, 0]
    assert stream.clock.tolist() == [6, 7, 8, 9]


def test_codes_and_points():
    stream = stream_of(ROWS, ALL)
    assert stream.source is not None
    assert stream.points is not None
    # order of arrival: b, a, a, null
    assert [stream.source.tolist().index(code) for code in stream.source] == [0, 1, 1, 3]
    assert [stream.source_names[code] for code in stream.source] == ["b", "a", "a", "None"]
    assert stream.points.shape == (2, 2)
    assert stream.points[:, 0].tolist() == [1.0, 3.0]
    assert stream.incomparable == 2


def test_without_arrival_times_a_row_is_as_late_as_it_lies_behind_the_newest():
    stream = stream_of(ROWS, ColumnRoles("made"))
    assert stream.event.tolist() == [5, 2, 9, 1]
    assert stream.delay.tolist() == [0, 3, 0, 8]
    assert stream.clock.tolist() == [1, 2, 5, 9]


def test_a_folder_of_parquet_files(tmp_path):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(ROWS, tmp_path / "b.parquet")
    assert load(tmp_path, ColumnRoles("made")).event.size == 8


def test_no_rows():
    stream = stream_of(ROWS.slice(0, 0), ALL)
    assert stream.event.size == stream.delay.size == stream.clock.size == 0
    assert RecordedStream(stream.event).delay.size == 0


def test_dates_are_midnights():
    table = pa.table({"day": pa.array([datetime(1970, 1, 2, tzinfo=UTC).date()])})
    assert stream_of(table, ColumnRoles("day")).event.tolist() == [86_400_000_000]


@pytest.mark.parametrize(
    ("roles", "complaint"),
    [
        (ColumnRoles("mad"), "column 'mad' does not exist; did you mean 'made'"),
        (ColumnRoles("made", "cam"), "column 'cam' does not exist; did you mean 'came' or 'cab'"),
        (ColumnRoles("made", criteria=sp.low("prices")), "column 'prices' does not exist; did you mean 'price'"),
        (ColumnRoles("cab"), "column 'cab' is of type string, need a timestamp, a date, or whole numbers"),
    ],
)
def test_a_column_that_will_not_do_is_named(tmp_path, roles, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load(written(tmp_path, "parquet"), roles)


def test_a_time_that_is_missing_is_reported(tmp_path):
    with pytest.raises(BadInputError, match="column 'rating' has 1 nulls, need a time in each row"):
        load(written(tmp_path, "parquet"), ColumnRoles("rating"))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("rows.txt", "cannot read .*rows.txt: unknown file name extension '.txt'"),
        ("rows.parquet", "cannot read .*rows.parquet: "),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, complaint):
    path = tmp_path / name
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match=complaint):
        load(path, ColumnRoles("made"))


@pytest.mark.parametrize(("unit", "factor"), [("s", 1_000_000), ("ms", 1_000), ("us", 1), (None, 1)])
def test_whole_numbers_count_their_unit(unit, factor):
    table = pa.table({"at": pa.array([3, 5], pa.int32()), "came": pa.array([7, 9], pa.uint64())})
    stream = stream_of(table, ColumnRoles("at", "came", unit=unit))
    assert stream.event.tolist() == [3 * factor, 5 * factor]
    assert stream.arrival is not None
    assert stream.arrival.tolist() == [7 * factor, 9 * factor]
    assert stream.unit_assumed is (unit is None)


def test_nanoseconds_are_cut_to_microseconds():
    assert stream_of(pa.table({"at": [1_999, -1]}), ColumnRoles("at", unit="ns")).event.tolist() == [1, -1]


def test_timestamps_are_read_in_their_unit():
    stream = stream_of(pa.table({"at": pa.array([3], pa.timestamp("ms"))}), ColumnRoles("at", unit="s"))
    assert stream.event.tolist() == [3_000]
    assert not stream.unit_assumed


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_a_number_beyond_all_times_is_refused(value):
    with pytest.raises(ConfigError, match="which is not a time in s; give another unit"):
        stream_of(pa.table({"at": [value]}), ColumnRoles("at", unit="s"))
    with pytest.raises(ConfigError, match="column 'at' holds a number that is not a time"):
        stream_of(pa.table({"at": pa.array([2**64 - 1], pa.uint64())}), ColumnRoles("at"))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.dictionary(pa.int32(), pa.float64())])
def test_a_null_criterion_leaves_the_row_out(kind):
    table = pa.table({"at": [1, 2, 3], "price": pa.array([5, None, 7]).cast(getattr(kind, "value_type", kind))})
    if pa.types.is_dictionary(kind):
        table = table.set_column(1, "price", table["price"].dictionary_encode())
    stream = stream_of(table, ColumnRoles("at", criteria=sp.low("price")))
    assert stream.points is not None
    assert stream.points.shape == (2, 1)
    assert stream.points[0, 0] < stream.points[1, 0]
    assert stream.incomparable == 1
