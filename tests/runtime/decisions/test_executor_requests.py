"""Executors are brought to a number, whatever the cluster does meanwhile; on real clusters: test_following_executors.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.runtime.executor_model import Cluster

from skypane.control.executor_count import ExecutorCount
from skypane.runtime.spark.machine.executor_follower import ExecutorFollower, follower_of
from skypane.runtime.spark.machine.executor_requests import ExecutorRequests
from skypane.runtime.spark.machine.jvm_executors import JvmExecutors

ACTIONS = st.lists(st.one_of(st.integers(1, 12), st.sampled_from(["registers", "leaves", "dies"])), max_size=60)


@given(ACTIONS, st.integers(1, 12), st.integers(1, 9), st.booleans())
def test_the_number_is_reached_as_far_as_the_cluster_grants_it(
    actions: list[int | str], wanted: int, size: int, given_first: bool
):
    cluster = Cluster.filled(size) if given_first else Cluster(size)
    requests = ExecutorRequests(cluster)
    for action in actions:
        if isinstance(action, int):
            requests.bring_to("query", action, lambda: True)
        else:
            cluster.step(action)
    requests.bring_to("query", wanted, lambda: True)
    cluster.calm()
    requests.bring_to("query", wanted, lambda: True)  # those that were being started when fewer were requested
    cluster.calm()
    assert requests.there == len(cluster.there) == min(wanted, size)


@given(ACTIONS, st.integers(1, 9))
def test_no_more_are_released_than_are_beyond_the_number(actions: list[int | str], size: int):
    cluster = Cluster(size)
    requests = ExecutorRequests(cluster)
    for action in actions:
        before = len(cluster.there)
        if isinstance(action, int):
            requests.bring_to("query", action, lambda: True)
            assert len(cluster.there) >= min(before, action)
        else:
            cluster.step(action)


def test_those_without_a_task_are_released_first_and_of_them_the_newest():
    cluster = Cluster.filled(12)
    cluster.busy = frozenset({"2", "11", "12"})
    ExecutorRequests(cluster).bring_to("query", 4, lambda: True)
    assert cluster.killed == ["10", "9", "8", "7", "6", "5", "4", "3"]


def test_an_executor_that_is_leaving_is_not_there_and_is_released_once():
    cluster = Cluster.filled(3)
    requests = ExecutorRequests(cluster)
    for _ in range(3):
        requests.bring_to("query", 1, lambda: True)
    assert (cluster.killed, cluster.leaving, requests.there) == (["3", "2"], ["3", "2"], 1)


def test_queries_of_an_application_request_their_sum_as_long_as_they_run():
    cluster = Cluster(12)
    requests = ExecutorRequests(cluster)
    running = {"one": True, "other": True}

    def runs(name: str) -> Callable[[], bool]:
        return lambda: running[name]

    requests.bring_to("one", 2, runs("one"))
    requests.bring_to("other", 5, runs("other"))
    assert cluster.total == 7
    requests.bring_to("one", 3, runs("one"))
    assert cluster.total == 8
    running["other"] = False
    cluster.calm()
    requests.bring_to("one", 3, runs("one"))
    assert (cluster.total, len(cluster.there)) == (3, 3)


def follower(cluster: Any, times: list[float], **options: Any) -> ExecutorFollower:
    return ExecutorFollower(
        ExecutorRequests(cluster), policy=ExecutorCount(10.0), clock=iter(times).__next__, **options
    )


def test_a_query_brings_executors_to_its_tasks_and_holds_them_for_a_while():
    cluster = Cluster.filled(4, slots=2)
    one = follower(cluster, [0.0, 5.0, 14.0, 16.0])
    totals = []
    for tasks in (8, 1, 1, 1):
        totals.append(one.follow(tasks).value)
        cluster.calm()
    assert totals == [4, 4, 4, 1], "two tasks an executor"
    assert len(cluster.there) == 1


def test_where_dynamic_allocation_sets_them_none_is_requested_or_released():
    cluster = Cluster.filled(4)
    decision = follower(cluster, [0.0], requesting=False).follow(1)
    assert decision.because.endswith("4 there; Spark's dynamic allocation sets them")
    assert (cluster.killed, cluster.total) == ([], None)


def test_there_are_no_executors_to_follow_where_workers_are_threads(spark: SparkSession):
    assert follower_of(spark) is None


def test_sparks_own_calls_are_there(spark: SparkSession):
    """Where workers are threads, Spark logs that there is nothing to request; with other arguments py4j would fail."""
    calls = JvmExecutors(spark)
    calls.request(2)
    calls.kill("1")
    assert (calls.ids(), calls.tasks()) == ([], {})


def test_slots_are_those_that_an_executor_shows_and_until_then_those_of_the_settings():
    cluster = Cluster(2, slots=2)
    requests = ExecutorRequests(cluster, slots=5)
    assert requests.slots == 5
    cluster.step("registers")
    cluster.step("registers")
    assert requests.slots == 2


@pytest.mark.parametrize("total", [1, 3])
def test_a_total_that_has_not_changed_is_not_requested_again(total: int):
    cluster = Cluster.filled(3)
    requests = ExecutorRequests(cluster)
    requests.bring_to("query", total, lambda: True)
    cluster.calm()
    cluster.total = -1
    requests.bring_to("query", total, lambda: True)
    assert cluster.total == -1
