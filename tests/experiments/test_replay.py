"""A recording comes back in order, by the clock, from any row, and as a whole."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from skypane.experiments.replay import Recording, ReplaySource, ReplayStreamReader, due, partitions_of, write_recording
from skypane.types import ConfigError

START = datetime(2013, 1, 1, tzinfo=UTC)


def recording(tmp_path, seconds, name="rows.arrow"):
    arrivals = pa.array([START + timedelta(seconds=s) for s in seconds], pa.timestamp("us", tz="UTC"))
    path = tmp_path / name
    write_recording(pa.table({"arrived": arrivals, "row": list(range(len(seconds)))}), path)
    return Recording(str(path), "arrived")


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self):
        return self.now


sorted_times = st.lists(st.integers(0, 10**9), max_size=30).map(lambda t: np.array(sorted(t), np.int64))


@given(sorted_times, st.integers(0, 30), st.floats(0, 1e4), st.floats(0.001, 1e4))
def test_due_rows_are_those_whose_time_has_come(arrivals, start, elapsed, speedup):
    start = min(start, len(arrivals))
    clock = arrivals[start] + round(elapsed * speedup * 1e6) if start < len(arrivals) else None
    expected = len(arrivals) if clock is None else max(start, sum(1 for t in arrivals if t <= clock))
    assert due(arrivals, start, elapsed, speedup) == expected


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 9))
def test_partitions_cover_each_row_once(start, rows, count):
    parts = partitions_of(start, start + rows, count)
    assert [row for p in parts for row in range(p.start, p.end)] == list(range(start, start + rows))
    assert len(parts) <= count
    assert all(p.end > p.start for p in parts)


def test_the_clock_starts_after_the_first_row_of_a_run(tmp_path):
    clock = Clock()
    reader = ReplayStreamReader(
        recording(tmp_path, [0, 10, 20, 30, 40]), speedup=10.0, limit=None, partitions=2, clock=clock
    )
    everything = ReadAllAvailable()

    offsets = [reader.latestOffset(reader.initialOffset(), everything)]
    clock.now += 60  # the workers start up: no time passes in the stream
    for wait in (0.0, 1.0, 1.5, 100.0):
        clock.now += wait
        offsets.append(reader.latestOffset(offsets[-1], everything))

    #            first row   10 s at once   +10 s   +15 s   the rest
    assert [o["row"] for o in offsets] == [1, 2, 3, 4, 5]
    assert reader.latestOffset({"row": 5}, everything) == {"row": 5}


def test_a_resumed_run_goes_on_at_its_row(tmp_path):
    clock = Clock()
    rec = recording(tmp_path, [0, 10, 20, 30, 40])
    reader = ReplayStreamReader(rec, speedup=10.0, limit=None, partitions=2, clock=clock)
    assert reader.latestOffset({"row": 3}, ReadAllAvailable()) == {"row": 4}
    assert reader.latestOffset({"row": 4}, ReadAllAvailable()) == {"row": 5}


def test_a_limit_is_kept_and_available_now_reads_all(tmp_path):
    reader = ReplayStreamReader(recording(tmp_path, range(5)), speedup=1e-9, limit=2, partitions=1)
    reader.prepareForTriggerAvailableNow()
    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert reader.latestOffset({"row": 0}, ReadMaxRows(2)) == {"row": 2}
    assert reader.latestOffset({"row": 4}, ReadMaxRows(2)) == {"row": 5}
    assert reader.latestOffset({"row": 1}, ReadAllAvailable()) == {"row": 5}
    assert reader.reportLatestOffset() == {"row": 5}


def test_a_task_carries_the_path_and_not_the_rows(tmp_path):
    rec = recording(tmp_path, range(5000))
    assert rec.table.num_rows == 5000
    assert len(pickle.dumps(rec)) < 500
    assert pickle.loads(pickle.dumps(rec)) == rec  # noqa: S301


def test_rows_out_of_order_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"rows of .*rows.arrow are not in ascending order of 'arrived'"):
        _ = recording(tmp_path, [3, 1]).arrivals


def test_an_unknown_arrival_column_is_refused(tmp_path):
    path = recording(tmp_path, [1]).path
    with pytest.raises(ConfigError, match=r"option arrival='when' is no column of .*\['arrived', 'row'\]"):
        _ = Recording(path, "when").arrivals


@pytest.mark.parametrize("value", ["0", "-1", "fast", "nan"])
def test_a_speedup_must_be_above_zero(tmp_path, value):
    source = ReplaySource({"path": recording(tmp_path, [1]).path, "arrival": "arrived", "speedup": value})
    with pytest.raises(ConfigError, match=f"option speedup of skypane-replay must be a number above zero, got '{value}'"):
        source.streamReader(source.schema())


def test_a_path_is_needed():
    with pytest.raises(ConfigError, match="skypane-replay needs option path"):
        _ = ReplaySource({}).recording
