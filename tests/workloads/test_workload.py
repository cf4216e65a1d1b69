"""Laws of the composition, and of the order of arrival."""

from __future__ import annotations

from itertools import chain, islice, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.types import ConfigError
from skypane.workloads import (
    Classic,
    ConstantFleet,
    ExponentialDelay,
    HeldBack,
    Map2,
    NoDelay,
    Poisson,
    Presence,
    Shared,
    UniformDelay,
    Workload,
)
from skypane.workloads.disorder.delays import Delays
from skypane.workloads.disorder.order import by_arrival, micros_of

STAMP = pa.timestamp("us", "UTC")


def stamped(times: list[int], delays: list[int]) -> pa.RecordBatch:
    arrivals = [time + delay for time, delay in zip(times, delays, strict=True)]
    columns = [
        pa.array(times, pa.int64()).view(STAMP),
        pa.array(arrivals, pa.int64()).view(STAMP),
        pa.array(range(len(times))),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["time", "arrival", "row"])


@given(
    rows=st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0, 0, 1, 5, 40, 1_000])), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_by_arrival_is_a_stable_sort_however_the_stream_is_cut(rows: list[tuple[int, int]], cuts: list[int]):
    batch = stamped(sorted(time for time, _ in rows), [delay for _, delay in rows])
    at = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [batch.slice(a, b - a) for a, b in pairwise(at)]
    ordered = [row for part in by_arrival(iter(parts)) for row in part["row"].to_pylist()]
    assert ordered == np.argsort(micros_of(batch, "arrival"), kind="stable").tolist()


def test_rows_leave_as_soon_as_nothing_can_overtake_them():
    parts = by_arrival(iter([stamped([0, 10], [5, 50]), stamped([20, 30], [0, 0]), stamped([100], [0])]))
    released = [micros_of(part, "arrival").tolist() for part in parts]
    assert released[0] == [5]
    assert list(chain(*released)) == [5, 20, 30, 60, 100]


@pytest.mark.parametrize(
    "delays", [UniformDelay("200 ms"), ExponentialDelay("5 seconds"), HeldBack("1 second", "1 second")]
)
def test_delays_change_the_order_of_rows_and_nothing_else(delays: Delays):
    def made(delays: Delays) -> pa.Table:
        return Workload(Shared(Poisson(2_000), 5), Classic("correlated", 3), delays=delays, rows=50_000).table()

    plain, delayed = made(NoDelay()), made(delays)
    assert plain["time"].equals(plain["arrival"])
    assert not delayed["time"].equals(plain["time"])
    arrivals = delayed["arrival"].cast("int64").to_numpy()
    assert (np.diff(arrivals) >= 0).all()
    assert (arrivals >= delayed["time"].cast("int64").to_numpy()).all()
    by = [("time", "ascending"), ("source", "ascending"), ("c0", "ascending")]
    assert delayed.drop_columns("arrival").sort_by(by).equals(plain.drop_columns("arrival").sort_by(by))


def test_points_do_not_change_the_times():
    few, many = (Workload(Map2(1_000, 50), Classic(d=d), rows=5_000).table() for d in (1, 8))
    assert few["time"].equals(many["time"])
    assert few["key"].equals(many["key"])


def test_the_schema_is_that_of_the_batches():
    made = Workload(ConstantFleet(5, 10), Classic(d=2), delays=UniformDelay("1 second"), rows=20_000)
    assert made.schema.names == ["time", "arrival", "source", "key", "c0", "c1"]
    assert made.schema.field("time").type == STAMP
    for batch in made:
        assert batch.schema == made.schema
        assert batch.num_rows


def test_a_stream_ends_after_rows_or_length():
    assert Workload(Poisson(1_000), rows=12_345).table().num_rows == 12_345
    assert Workload(Poisson(1_000), rows=0).table().num_rows == 0
    made = Workload(Poisson(1_000), length="40 seconds")
    times = made.table()["time"].cast("int64").to_numpy() - made.start
    assert len(times) == pytest.approx(40_000, rel=0.03)
    assert times[-1] < 40_000_000
    assert Workload(Poisson(1_000), rows=100, length="40 seconds").table().num_rows == 100
    assert Workload(Poisson(1_000), rows=10**6, length="1 second").table().num_rows < 2_000


def test_an_endless_stream_continues_and_cannot_become_a_table():
    made = Workload(Poisson(1_000), delays=UniformDelay("1 second"))
    assert sum(batch.num_rows for batch in islice(made, 30)) > 300_000
    with pytest.raises(ConfigError, match="an endless workload cannot be a table; give rows= or length="):
        made.table()


def test_absent_sources_send_nothing():
    fleet = Shared(Poisson(10_000), 10)
    whole = Workload(fleet, length="10 seconds").table().num_rows
    stalling = Workload(fleet, presence=Presence(stall_every="1 second", stall_for="1 second"), length="10 seconds")
    assert stalling.table().num_rows == pytest.approx(whole / 2, rel=0.3)
    # Once all have left, the stream is over, without a length.
    gone = Workload(fleet, presence=Presence(stay="1 second"))
    assert sum(batch.num_rows for batch in gone) < whole


def test_a_stream_whose_only_source_stalls_for_good_ends_at_its_length():
    silent = Presence(stall_every="1 us", stall_for="1000 weeks")
    assert Workload(Poisson(100), presence=silent, length="10 seconds").table().num_rows == 0
