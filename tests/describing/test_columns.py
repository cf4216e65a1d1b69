"""A file's columns come in the order of arrival, each in its role; what cannot be used is named."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import skypane as sp
from skypane.describing.columns import Roles, Stream, load, stream_of
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
ALL = Roles("made", "came", "cab", "cab", sp.low("price") * sp.high("rating"))


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
    assert stream.points.shape == (2, 2)
    assert stream.points[:, 0].tolist() == [1.0, 3.0]
    assert stream.incomparable == 2


def test_without_arrival_times_a_row_is_as_late_as_it_lies_behind_the_newest():
    stream = stream_of(ROWS, Roles("made"))
    assert stream.event.tolist() == [5, 2, 9, 1]
    assert stream.delay.tolist() == [0, 3, 0, 8]
    assert stream.clock.tolist() == [1, 2, 5, 9]


def test_a_folder_of_parquet_files(tmp_path):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(ROWS, tmp_path / "b.parquet")
    assert load(tmp_path, Roles("made")).event.size == 8


def test_no_rows():
    stream = stream_of(ROWS.slice(0, 0), ALL)
    assert stream.event.size == stream.delay.size == stream.clock.size == 0
    assert Stream(stream.event).delay.size == 0


def test_dates_are_midnights():
    table = pa.table({"day": pa.array([datetime(1970, 1, 2, tzinfo=UTC).date()])})
    assert stream_of(table, Roles("day")).event.tolist() == [86_400_000_000]


@pytest.mark.parametrize(
    ("roles", "complaint"),
    [
        (Roles("mad"), "column 'mad' does not exist; did you mean 'made'"),
        (Roles("made", "cam"), "column 'cam' does not exist; did you mean 'came' or 'cab'"),
        (Roles("made", criteria=sp.low("prices")), "column 'prices' does not exist; did you mean 'price'"),
        (Roles("cab"), "column 'cab' is string, need a timestamp, a date, or int64 microseconds"),
    ],
)
def test_a_column_that_will_not_do_is_named(tmp_path, roles, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load(written(tmp_path, "parquet"), roles)


def test_a_time_that_is_missing_is_told(tmp_path):
    with pytest.raises(BadInputError, match="column 'rating' has 1 nulls, need a time in each row"):
        load(written(tmp_path, "parquet"), Roles("rating"))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("rows.txt", "cannot tell from '.txt' how"), ("rows.parquet", "cannot read .*rows.parquet: ")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, complaint):
    path = tmp_path / name
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match=complaint):
        load(path, Roles("made"))
