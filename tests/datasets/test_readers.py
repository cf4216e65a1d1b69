"""Each layout is read to the last field; each bad line is reported, with its number and its reason."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from skypane.datasets import CABS, LAYOUTS, RATES, SENSORSCOPE, SOCCER, counts, meters, read_all
from skypane.datasets.sensorscope import CRITERIA
from skypane.types import BadInputError, ConfigError


def written(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(layout, path, *lines):
    """The reading of a file of a layout that has these lines."""
    return read_all(layout, [written(path, *lines)])


def rejected_lines(reading):
    return [(entry["line"], entry["reason"]) for entry in reading.rejected.to_pylist()]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_rows_begin_with_an_event_time_and_a_source(tmp_path, layout):
    reading = read(layout, tmp_path / "rows.txt", "nonsense")
    assert reading.table.schema.field("time").type == pa.timestamp("us", "UTC")
    assert reading.table.schema.field("source").type == pa.string()
    assert reading.table.column_names[:2] == ["time", "source"]
    assert reading.table.num_rows == 0
    assert reading.reasons == {f"is not {len(layout.fields)} fields": 1}


def test_soccer(tmp_path):
    reading = read(
        SOCCER,
        tmp_path / "full-game",
        "4,10753295594424116,26215,-13,2480,2100713,9834051,-9213,-3878,-279,3345,-9421,229",
        "4,10753295594424116,26215,-13,2480,2100713,9834051,-9213,-3878",
        "105,10753295594999999,1,2,3,4,5,6,7,8,9,10,eleven",
        "105,10753295595000001,1,2,3,4,5,6,7,8,9,10,11",
    )
    first, second = reading.table.to_pylist()
    assert first["time"] == datetime(1970, 1, 1, 2, 59, 13, 295594, UTC)
    assert second["time"] == datetime(1970, 1, 1, 2, 59, 13, 295595, UTC)
    assert (first["source"], second["source"]) == ("4", "105")
    assert list(first.values())[2:] == [26215, -13, 2480, 2100713, 9834051, -9213, -3878, -279, 3345, -9421, 229]
    assert rejected_lines(reading) == [(2, "is not 13 fields"), (3, "az is not a whole number")]
    assert reading.rejected["text"][1].as_py().endswith("10,eleven")


def test_sensorscope_takes_nan_for_a_missing_reading(tmp_path):
    reading = read(
        SENSORSCOPE,
        tmp_path / "sensorscope-monitor-2.txt",
        "2 2007 08 27 17 43 10 1188229390 7 120 120 1.5 0 868 3.243 4.003 6.202 1.807 2.000",
        "2 2007 08 27 17 45 10 1188229510 8 NaN 120 1.5 0 868 3.243 4.003 NaN 1.807 2.000",
        "2 NaN 08 27 17 45 10 1188229510 8 120 120 1.5 0 868 3.243 4.003 6.202 1.807 2.000",
        "2 2007 08 27 17 45 10 -1 8 120 120 1.5 0 868 3.243 4.003 6.202 1.807 2.000",
    )
    first, second = reading.table.to_pylist()
    assert first["time"] == datetime(2007, 8, 27, 15, 43, 10, tzinfo=UTC)  # the calendar fields are two hours ahead
    assert first["source"] == "2"
    assert [first[name] for name in CRITERIA] == [6.202, 1.807, 3.243, 4.003]
    assert (second["config_sampling"], second["solar_current"]) == (None, None)
    assert rejected_lines(reading) == [
        (3, "year is not a whole number"),
        (4, "epoch is not within the years 1970 to 2999"),
    ]


def test_cabs_are_turned_round_and_merged_by_time(tmp_path):
    one = written(
        tmp_path / "new_abboip.txt",
        "37.75134 -122.39488 0 1213084687",
        "97.75136 -122.39527 0 1213084659",
        "37.75199 -122.39460 2 1213084600",
        "37.75200 -122.39460 1 1213084540",
    )
    two = written(tmp_path / "new_enyenewl.txt", "37.8 -122.4 1 1213084650")
    reading = read_all(CABS, [one, two])
    assert [row["source"] for row in reading.table.to_pylist()] == ["abboip", "abboip", "enyenewl"]
    merged = reading.by_time().table.to_pylist()
    assert [row["source"] for row in merged] == ["abboip", "enyenewl", "abboip"]
    assert merged[0] == {
        "time": datetime(2008, 6, 10, 7, 55, 40, tzinfo=UTC),
        "source": "abboip",
        "latitude": 37.752,
        "longitude": -122.3946,
        "occupancy": 1,
    }
    assert rejected_lines(reading) == [(2, "latitude is not within -90 and 90"), (3, "occupancy is not 0 or 1")]


def test_meters_follow_the_clock_of_their_country(tmp_path):
    reading = read(
        meters(),
        tmp_path / "File1.txt",
        "1392 00101 0.14",  # 1 January 2009, winter time
        "1392 19503 0.138",  # 14 July 2009, summer time
        "1392 29850 0.2",  # 25 October 2009 has 25 hours
        "1392 29901 0.3",
        "1392 19551 0.1",
        "1392 19500 0.1",
        "1392 195030 0.1",
        "1392 19504 NaN",
        "1392 19505",
    )
    assert [row["time"] for row in reading.table.to_pylist()] == [
        datetime(2009, 1, 1, tzinfo=UTC),
        datetime(2009, 7, 14, 0, 0, tzinfo=UTC),  # 01:00 on the meter
        datetime(2009, 10, 25, 23, 30, tzinfo=UTC),
        datetime(2009, 10, 26, tzinfo=UTC),
    ]
    assert set(reading.table["source"].to_pylist()) == {"1392"}
    assert reading.table["kwh"].to_pylist() == [0.14, 0.138, 0.2, 0.3]
    assert reading.reasons == {
        "code is not DDDHH with half hours 01 to 50": 3,
        "kwh is missing": 1,
        "is not 3 fields": 1,
    }


def test_rates(tmp_path):
    reading = read(
        RATES,
        tmp_path / "arrivals.txt",
        "0 13909",
        "1\t14861.0",
        "",
        "3 5",
        "4 -1",
        "5 1.5",
        "5.5 1",
        "6 NaN",
        "7 2",
        "99999999999 1",
    )
    assert reading.table["source"].to_pylist() == ["arrivals"] * 4
    assert counts(reading.table).tolist() == [13909, 14861, 0, 5, 0, 0, 0, 2]
    assert rejected_lines(reading) == [
        (5, "count is below zero"),
        (6, "count is not whole"),
        (7, "second is not a whole number"),
        (8, "count is missing"),
        (10, "second is not within the years 1970 to 2999"),
    ]


def test_a_trace_of_centuries_is_refused(tmp_path):
    reading = read(RATES, tmp_path / "arrivals.txt", "0 1", "9999999999 1")
    with pytest.raises(BadInputError, match="a trace from second 0 to 9999999999 is longer than ten years"):
        counts(reading.table)


def test_nothing_to_count():
    schema = pa.schema({"time": pa.timestamp("us", "UTC"), "count": pa.int64()})
    assert counts(schema.empty_table()).size == 0


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere.txt as arrival rates: No such file"):
        read_all(RATES, [tmp_path / "nowhere.txt"])


def test_no_lines_give_no_reading(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(ConfigError, match="no file to read as arrival rates, or only empty ones"):
        read_all(RATES, [empty])
