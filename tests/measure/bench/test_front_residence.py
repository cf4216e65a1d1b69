"""Shards of a front outside of the driver, as the measure keeps them: one answer each, wherever they are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure.bench.front_residence import DESIGNS, PARTS, by_rows, compared, feed_of, line, parts, tables
from measure.residence import journal as module
from measure.residence.critical_path import ShardPool
from measure.residence.journal import Journal
from measure.residence.one_trip import OneTripFront, OneTripShard, Request, Response
from measure.residence.stateful import keys_of_partitions
from pyspark.sql import SparkSession
from tests.operators.fronts.streams import plain

from skypane.operators.fronts import Front, FrontContents, NewPoints
from skypane.operators.fronts.sharded_fronts import dealt
from skypane.workloads.content.points import anticorrelated

Steps = list[tuple[NewPoints, int]]


def steps(sizes: list[int], ticks: int, d: int, rng: np.random.Generator) -> Steps:
    """Anticorrelated points, `ticks` of them at each instant, in steps of these sizes, with numbers in no order of time."""
    found, clock, first = [], 0, 0
    for size in sizes:
        times = clock + np.arange(size) // ticks
        rows = rng.permutation(size) + first
        clock, first = clock + -(-size // ticks), first + size
        found.append((NewPoints(np.round(anticorrelated(size, d, rng), 2), times, rows), clock))
    return found


def in_process(begin: FrontContents, window: int, shards: int) -> OneTripFront:
    own = dealt(begin, shards)
    fronts = [OneTripShard.restore(part, window) for part in own]

    def send(request: Request) -> list[Response]:
        return [front.answer(request, shard) for shard, front in enumerate(fronts)]

    return OneTripFront(own, window, send)


def of_journal(folder: Path, window: int, shards: int) -> tuple[OneTripFront, list[int]]:
    """A front whose shards this process finds by a journal, and a list that grows by the steps repeated."""
    journal, own = Journal(str(folder), window), dealt(FrontContents.empty(4, grouped=False), shards)
    journal.begin(own)
    repeated: list[int] = []

    def send(request: Request) -> list[Response]:
        journal.ask(request)
        repeated.extend(journal.answer(shard, request.step) for shard in range(shards))
        return [journal.response(shard, request.step) for shard in range(shards)]

    return OneTripFront(own, window, send), repeated


def assert_same(shared: OneTripFront, alone: Front, stream: Steps) -> None:
    for arrivals, until in stream:
        assert plain(shared.step(arrivals, until)) == plain(alone.step(arrivals, until))


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 60),
    st.integers(0, 99),
)
def test_shards_that_answer_once_a_step_return_the_updates_of_a_whole_front(
    sizes: list[int], ticks: int, d: int, shards: int, window: int, seed: int
):
    alone = Front(d, window)
    shared = in_process(FrontContents.empty(d, grouped=False), window, shards)
    assert_same(shared, alone, steps(sizes, ticks, d, np.random.default_rng(seed)))


@pytest.mark.parametrize("shards", [1, 3])
def test_more_arrivals_in_a_step_than_a_shard_has_room_for(shards: int):
    """Points that enter and leave within the step are discarded to make room before their starts are known."""
    alone, shared = Front(4, 4_000), in_process(FrontContents.empty(4, grouped=False), 4_000, shards)
    assert_same(shared, alone, steps([60_000, 30_000, 500], 3, 4, np.random.default_rng(3)))


def test_a_shard_that_is_lost_or_behind_or_ahead_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Between two workers each shard is found in the one or the other, as Spark places its task."""
    workers: list[dict[tuple[str, int], tuple[int, OneTripShard]]] = [{}, {}]
    alone, (shared, repeated) = Front(4, 3_000), of_journal(tmp_path, 3_000, 2)
    stream = steps([2_000] * 6, 1, 4, np.random.default_rng(5))
    for step, worker in zip(stream, (0, 0, 1, 0, 1, 1), strict=True):
        monkeypatch.setattr(module, "_KEPT", workers[worker])
        assert_same(shared, alone, [step])
    assert repeated[::2] == repeated[1::2] == [0, 0, 2, 1, 1, 0]
    first = Journal(str(tmp_path), 3_000).answer(0, 2)  # a task that Spark runs again
    assert first == 2


def test_the_slowest_thread_is_on_the_critical_path():
    pool = ShardPool(3)
    assert pool(lambda a, b: a + b, [1, 2, 3], [10, 20, 30]) == [11, 22, 33]
    assert pool.beyond >= 0


def test_each_design_returns_the_updates_of_the_driver_alone(spark: SparkSession):
    """compared() asserts it; in two threads of one machine tasks find their shard in the one worker or the other."""
    feed = feed_of(2_000, 500, 2, 2)
    runs = compared(spark, feed)
    assert tuple(runs) == DESIGNS
    assert len(line(feed, runs)) == 1 + len(DESIGNS) + 2
    assert [len(cells) for cells in parts(feed, runs)] == [6] * (len(DESIGNS) - 2)


def test_each_partition_of_a_shuffle_has_a_key(spark: SparkSession):
    keys = keys_of_partitions(spark, 5)
    rows = spark.createDataFrame([(key,) for key in keys], "key int").repartition(5, "key")
    assert rows.rdd.glom().map(lambda part: [row.key for row in part]).collect() == [[key] for key in keys]


def test_lines_of_all_tables_are_in_the_order_of_their_rows():
    shares = [["400,000", "threads", "3"], ["1,000", "threads", "7"], ["1,000", "beside", "9"]]
    assert by_rows(shares) == [shares[1], shares[2], shares[0]]
    both = tables([["400,000", *"12345678"], ["1,000", *"12345678"]], shares, 4)
    assert [len(table.head) for table in both] == [1 + len(DESIGNS) + 2, len(PARTS)]
    assert [line[0] for table in both for line in table.lines] == ["1,000", "400,000", "1,000", "1,000", "400,000"]
