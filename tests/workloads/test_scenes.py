"""Cabs and meters: made again the same, in the order of arrival, and as their descriptions say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skypane.types import ConfigError, IntArray
from skypane.workloads import SCENES, Cabs, Meters, Stream, workload
from skypane.workloads.cabs import CRAWL, FREE, HOT
from skypane.workloads.meters import CONCENTRATORS, HOUSES, LIMIT


def micros(table: pa.Table, column: str) -> IntArray:
    return np.asarray(table[column].cast(pa.int64()).to_numpy())


def content(made: Stream) -> bytes:
    """All rows; to Arrow, NaN is unlike NaN."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as stream:
        stream.write_table(made.table())
    return bytes(sink.getvalue())


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_made_again_the_same_and_another_seed_is_another_one(name: str):
    made = workload(name, rows=40_000)
    assert content(made) == content(workload(name, rows="40000"))
    assert content(made) != content(workload(name, rows=40_000, seed=1))
    assert made.table().schema == made.schema


@pytest.mark.parametrize("made", [Cabs(rows=50_000), Meters(rows=50_000)], ids=["cabs", "meters"])
def test_rows_come_in_the_order_of_arrival_and_not_of_time(made: Stream):
    rows = made.table()
    times, arrivals = micros(rows, "time"), micros(rows, "arrival")
    assert rows.num_rows == 50_000
    assert (np.diff(arrivals) >= 0).all()
    assert (arrivals >= times).all()
    assert (np.diff(times) < 0).any()


@pytest.mark.parametrize("config", SCENES.values())
def test_a_scene_ends_at_its_length_or_its_rows_whatever_is_first(config: type[Stream]):
    whole = config(length="30 minutes").table()  # type: ignore[call-arg]
    assert whole.num_rows > 5_000
    start = config(rows=0).start  # type: ignore[call-arg]
    assert start <= micros(whole, "time").min()
    assert micros(whole, "time").max() < start + 30 * 60 * 1_000_000
    first = config(length="30 minutes", rows=5_000).table()  # type: ignore[call-arg]
    assert first.num_rows == 5_000
    assert set(micros(first, "time")) <= set(micros(whole, "time"))


def test_cabs_crawl_in_queues_drive_on_streets_and_wait_at_ranks():
    rows = Cabs(length="2 hours").table()
    waiting = rows.filter(pc.equal(rows["report"], "waiting"))["speed"].to_numpy()
    speed = rows.filter(pc.equal(rows["report"], "traffic"))["speed"].to_numpy()
    assert (waiting == 0).all()
    crawling = (speed >= CRAWL[0]) & (speed <= CRAWL[1])
    assert (crawling | ((speed >= FREE[0]) & (speed <= FREE[1]))).all()
    assert 0.05 < crawling.mean() < 0.5


def test_there_is_no_queue_outside_of_the_hours_of_a_place():
    night = Cabs(length="1 hour", start=0).table()
    assert all(place.queue(hour) == 0 for place in HOT for hour in (0.0, 1.0))
    assert pc.min(night.filter(pc.equal(night["report"], "traffic"))["speed"]).as_py() >= FREE[0]


def test_a_concentrator_sends_in_the_order_of_its_time_and_covers_three_streets():
    rows = Meters(length="4 hours").table()
    names = set(rows["concentrator"].to_pylist())
    assert len(names) == CONCENTRATORS
    for name in names:
        mine = rows.filter(pc.equal(rows["concentrator"], name))
        assert mine["sequence"].to_pylist() == list(range(mine.num_rows))
        assert (np.diff(micros(mine, "time")) >= 0).all()
        streets = set(mine["street"].to_pylist())
        assert len(streets) == 3
    heard = rows.group_by("meter").aggregate([("concentrator", "count_distinct")])
    assert set(heard["concentrator_count_distinct"].to_pylist()) == {3}


def test_each_meter_is_read_once_a_minute_and_few_of_them_badly():
    rows = Meters(length="10 hours").table()
    per_minute = rows.append_column("minute", pc.divide(pc.cast(rows["time"], pa.int64()), 60_000_000))
    counted = per_minute.group_by(["meter", "minute"]).aggregate([([], "count_all")])
    assert counted.num_rows == 243 * 600
    assert set(counted["count_all"].to_pylist()) == {1}
    kwh = rows["kwh"].to_numpy()
    wrong = ~((kwh >= 0) & (kwh <= LIMIT))
    assert len(set(rows["meter"].to_numpy()[wrong])) == 5
    assert rows["kwh"].null_count
    assert np.isnan(pc.drop_null(rows["kwh"]).to_numpy()).any()
    assert {-1.0, 9999.0} <= set(kwh[wrong])


def test_without_power_a_whole_street_has_no_voltage_and_draws_nothing():
    rows = Meters(length="1 day", bad=0).table()
    out = rows.filter(pc.equal(rows["volts"], 0.0))
    assert out.num_rows
    assert pc.max(pc.abs(out["kwh"])).as_py() == 0
    minutes = pc.divide(pc.cast(out["time"], pa.int64()), 60_000_000)
    houses = out.append_column("minute", minutes).group_by(["street", "minute"]).aggregate([("house", "count")])
    # A street loses its power between two readings: in the first and the last minute it is out for some of its meters.
    assert np.median(houses["house_count"].to_numpy()) == HOUSES


@pytest.mark.parametrize(
    ("name", "parameters", "complaint"),
    [
        ("cabs", {"cabs": 0}, "need a whole number cabs >= 1"),
        ("cabs", {"every": "0 s"}, "every"),
        ("cabs", {"delay": "soon"}, "soon"),
        ("cabs", {"rate": 3}, "workload 'cabs' has no parameter 'rate'; it takes cabs"),
        ("meters", {"bad": 2}, "need 0 <= bad <= 1, got bad=2"),
        ("meters", {"rows": -1}, "rows"),
    ],
)
def test_what_cannot_be_created_is_reported(name: str, parameters: dict[str, object], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        workload(name, **parameters)
