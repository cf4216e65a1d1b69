"""Tables of open formats and of databases, and topics, as outputs: what holds for all, whatever happens to their drivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.runtime.database_places import DATABASES, DatabasePlace, database
from tests.runtime.rows_of_batches import CHANGES, NO_SPARK, SCHEMA, numbers, of
from tests.runtime.table_places import PLACES, OpenPlace
from tests.runtime.topic_place import TopicPlace

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.types import CheckpointError, ConfigError

Place = OpenPlace | DatabasePlace | TopicPlace


TABLES = [*PLACES, *DATABASES]


@pytest.fixture(params=[*TABLES, pytest.param("kafka", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    kind = request.param
    if kind == "kafka":
        return TopicPlace.made(request.getfixturevalue("kafka"))
    return PLACES[kind](tmp_path) if kind in PLACES else database(kind, request, tmp_path)


of_tables = pytest.mark.parametrize("place", TABLES, indirect=True)


def test_a_batch_that_comes_again_is_there_once_in_this_start_and_in_the_next(place: Place, tmp_path: Path):
    """The last time in another order, from files of workers; batches without rows leave nothing."""
    first = place.started()
    for batch in (0, 0, 1, 1):
        first.write(NO_SPARK, numbers(batch, 10 + batch), batch)
    first.write(NO_SPARK, numbers(), 2)
    first.write(NO_SPARK, numbers(3, 13), 3)
    second = place.started(3, driver="driver-2")
    store = DocumentStore.at(str(tmp_path))
    for name, number in (("a", 13), ("b", 3)):
        store.write_parquet(name, SCHEMA, numbers(number).tables)
    second.write(NO_SPARK, replace(numbers(3, 13), tables=(), store=store, files=("a", "b")), 3)
    second.write(NO_SPARK, numbers(4), 4)
    assert place.rows() == [0, 1, 3, 4, 10, 11, 13]


@of_tables
def test_changes_without_a_key_are_kept_as_they_are(place: OpenPlace | DatabasePlace):
    sink = place.started(schema=CHANGES)
    sink.write(NO_SPARK, of(CHANGES, (0, 0, "ADD", "Oslo", 1), (0, 1, "DEL", "Oslo", 1)), 0)
    assert place.rows("action", "n") == [("ADD", 1), ("DEL", 1)]


@of_tables
def test_the_table_of_a_front_has_the_whole_front_of_the_last_batch(place: Place):
    sink = place.started(role="front")
    sink.write(NO_SPARK, numbers(1, 2), 0)
    sink.write(NO_SPARK, numbers(2, 3), 1)
    assert place.rows() == [2, 3]
    sink.write(NO_SPARK, numbers(), 2)
    assert place.rows() == []


def test_a_driver_that_was_fenced_before_it_opens_the_sink_fences_no_other(place: Place):
    def fenced() -> None:
        raise CheckpointError("another driver has taken over")

    running = place.started(driver="driver-2")
    with pytest.raises(CheckpointError, match="another driver has taken over"):
        place.started(driver="driver-1", check=fenced)
    running.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [1]


def test_one_sink_of_two_jobs_has_the_batches_of_both(place: Place):
    """Their batches have the same numbers. Each job checks its rows when it is made, before either starts."""
    given = place.sink()
    first, second = (Sinks.of(given).output for _ in range(2))
    first.check(SCHEMA)
    second.check(SCHEMA.append(pa.field("unlike", pa.int64())))
    first.open(QueryStart("q", "driver-1"))
    second.check(SCHEMA)
    second.open(QueryStart("r", "driver-2"))
    for batch in range(2):
        first.write(NO_SPARK, numbers(batch), batch)
    for batch in range(2):
        second.write(NO_SPARK, numbers(10 + batch), batch)
    assert place.rows() == [0, 1, 10, 11]


def test_a_table_ahead_of_the_checkpoint_and_other_rows_of_a_batch_are_refused(place: Place):
    first = place.started()
    for batch in range(3):
        first.write(NO_SPARK, numbers(batch), batch)
    with pytest.raises(CheckpointError, match="up to 2, and the next batch of the checkpoint is 1: the checkpoint is"):
        place.started(1)
    repeated = place.started(2)
    for other in (numbers(5), numbers()):
        with pytest.raises(CheckpointError, match=r"batch 2 comes again with other rows than (table|topic)"):
            repeated.write(NO_SPARK, other, 2)
    assert place.rows() == [0, 1, 2]


def test_a_fenced_driver_writes_nothing_more(place: Place):
    first = place.started(driver="driver-1")
    first.write(NO_SPARK, numbers(0), 0)
    second = place.started(1, driver="driver-2")
    with pytest.raises(CheckpointError, match="another driver of this query has started and taken over"):
        first.write(NO_SPARK, numbers(1), 1)
    second.write(NO_SPARK, numbers(1), 1)
    assert place.rows() == [0, 1]


def test_queries_and_roles_have_separate_batches(place: Place):
    for claim in ({"query": "q"}, {"query": "another"}, {"query": "q", "role": "late"}):
        place.started(**claim).write(NO_SPARK, numbers(1), 0)  # type: ignore[arg-type]
    assert place.rows() == [1, 1, 1]


def test_one_sink_is_for_one_role(place: Place):
    sink = place.started()
    with pytest.raises(ConfigError, match="one sink is for output and for late; make one for each"):
        sink.open(QueryStart("q", role="late"))


def test_one_sink_has_one_role_in_a_job(place: Place):
    given = place.sink()
    for sinks in (Sinks.of(given, given), SharedSinks.of({"best": given}, given, ["best"])):
        (role, first), (other, second) = sinks.by_role.items()
        first.check(SCHEMA)
        first.open(QueryStart("q", role=role))
        with pytest.raises(ConfigError, match=rf": one sink is for {role} and for {other}; make one for each"):
            second.open(QueryStart("q", role=other))
