"""Rows come by the clock, from any row, at most so many at once, each exactly once across a restart."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.parameters import slow_but

from skypane.runtime.spark.sources.recordings import Recording, write_recording
from skypane.runtime.spark.sources.replay import (
    ReplaySource,
    ReplayStreamReader,
    partitions_of,
    replay,
    replay_workload,
)
from skypane.types import CheckpointError, ConfigError
from skypane.workloads import workload

START = datetime(2013, 1, 1, tzinfo=UTC)
EVERYTHING = ReadAllAvailable()


def table_of(seconds):
    arrivals = pa.array([START + timedelta(seconds=s) for s in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table({"arrived": arrivals, "row": pa.array(range(len(seconds)), pa.int64())})


def recording(tmp_path, seconds):
    path = tmp_path / "rows.arrow"
    write_recording(table_of(seconds), path)
    return Recording(str(path), "arrived")


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self):
        return self.now


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 9))
def test_partitions_cover_each_row_once(start, rows, count):
    parts = partitions_of(start, start + rows, count)
    assert [row for p in parts for row in range(p.start, p.end)] == list(range(start, start + rows))
    assert len(parts) <= count
    assert all(p.end > p.start for p in parts)


def test_the_clock_starts_after_the_first_row_of_a_run(tmp_path):
    clock = Clock()
    rows = recording(tmp_path, [0, 10, 20, 30, 40])
    reader = ReplayStreamReader(rows, speedup=10.0, limit=None, partitions=2, clock=clock)

    offsets = [reader.latestOffset(reader.initialOffset(), EVERYTHING)]
    clock.now += 60  # the workers start up: no time passes in the stream
    for wait in (0.0, 1.0, 1.5, 100.0):
        clock.now += wait
        offsets.append(reader.latestOffset(offsets[-1], EVERYTHING))

    #            first row   10 s at once   +10 s   +15 s   the rest
    assert [o["row"] for o in offsets] == [1, 2, 3, 4, 5]
    assert reader.latestOffset({"row": 5}, EVERYTHING) == {"row": 5}


def test_a_resumed_run_continues_at_its_row(tmp_path):
    rows = recording(tmp_path, [0, 10, 20, 30, 40])
    reader = ReplayStreamReader(rows, speedup=10.0, limit=None, partitions=2, clock=Clock())
    assert reader.latestOffset({"row": 3}, EVERYTHING) == {"row": 4}
    assert reader.latestOffset({"row": 4}, EVERYTHING) == {"row": 5}


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    reader = ReplayStreamReader(recording(tmp_path, [0, 10]), speedup=None, limit=None, partitions=2)
    with pytest.raises(CheckpointError, match="the checkpoint is at row 3, but the source has 2 rows"):
        reader.latestOffset({"row": 3}, EVERYTHING)


def test_a_limit_is_kept_and_available_now_reads_all(tmp_path):
    reader = ReplayStreamReader(recording(tmp_path, range(5)), speedup=1e-9, limit=2, partitions=1)
    reader.prepareForTriggerAvailableNow()
    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert reader.latestOffset({"row": 0}, ReadMaxRows(2)) == {"row": 2}
    assert reader.latestOffset({"row": 4}, ReadMaxRows(2)) == {"row": 5}
    assert reader.latestOffset({"row": 1}, EVERYTHING) == {"row": 5}
    assert reader.reportLatestOffset() == {"row": 5}


def test_times_that_cannot_be_replayed_are_reported_before_the_start(tmp_path):
    rows = recording(tmp_path, [3, 1])
    ReplayStreamReader(rows, speedup=None, limit=None, partitions=1)
    with pytest.raises(ConfigError, match="not in ascending order of 'arrived'"):
        ReplayStreamReader(rows, speedup=1.0, limit=None, partitions=1)


@pytest.mark.parametrize("value", ["0", "-1", "fast", "nan"])
def test_a_speedup_must_be_above_zero(tmp_path, value):
    source = ReplaySource({"path": recording(tmp_path, [1]).path, "arrival": "arrived", "speedup": value})
    complaint = f"option speedup of skypane-replay must be a number above zero, got '{value}'"
    with pytest.raises(ConfigError, match=complaint):
        source.streamReader(source.schema())


@pytest.mark.parametrize("options", [{}, {"path": "rows.arrow", "workload": "poisson"}])
def test_a_path_or_a_workload_is_needed(options):
    with pytest.raises(ConfigError, match="skypane-replay needs option path, a file to replay, or workload, got"):
        _ = ReplaySource(options).source


MADE = {"rate": 1000, "delay": "exponential", "delay_mean": "1 second", "d": 2, "rows": 1000, "seed": 3}


@pytest.mark.parametrize("kind", slow_but(["file"], ["file", "workload"]))
def test_each_row_once_across_a_failure(spark, tmp_path, kind):
    table = table_of(range(1000)) if kind == "file" else workload("poisson", **MADE).table()
    unread = pa.array(["a text in a layout of its own"] * table.num_rows, pa.large_string())
    pq.write_table(table.append_column("unread", unread), tmp_path / "rows.parquet", row_group_size=64)
    seen = []

    def stream():
        if kind == "file":
            return replay(spark, tmp_path / "rows.parquet", rows_per_trigger=150, partitions=3)
        return replay_workload(spark, "poisson", MADE, rows_per_trigger=150, partitions=3)

    def run(fail_at):
        def sink(rows, number):
            if number == fail_at:
                raise RuntimeError("the sink fails")
            seen.append((number, rows.select(table.column_names).toArrow()))

        writer = stream().writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="the sink fails"):
        run(fail_at=3)
    run(fail_at=None)
    assert [number for number, _ in seen] == list(range(7))
    assert [part.num_rows for _, part in seen] == [150] * 6 + [100]
    order = [(name, "ascending") for name in table.column_names]
    found = pa.concat_tables(part for _, part in seen)
    assert found.sort_by(order).equals(table.sort_by(order))
