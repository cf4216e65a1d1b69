"""A topic of a real broker as output: a batch is there once or not at all, whatever happens to the driver or the broker."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, numbers, of
from tests.runtime.sinks.opening import opened
from tests.runtime.streams import read_batches, write_batches
from tests.runtime.table_stream_driver import finish_at_once
from tests.runtime.topic_place import TopicPlace
from tests.servers.kafka import PASSWORD, Broker

import skypane as sp
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.kafka_topic import Kafka
from skypane.runtime.spark.sinks.topic_writer import Message, TopicWriter
from skypane.types import CheckpointError, ConfigError


@pytest.fixture
def place(kafka: Broker) -> TopicPlace:
    return TopicPlace.made(kafka)


def numbers_in(place: TopicPlace) -> list[int]:
    """Return n of all messages, in their order."""
    return [row["n"] for _, row in place.messages()]


def test_each_row_is_a_message_of_json_with_its_key(place: TopicPlace):
    place.started().write(NO_SPARK, numbers(7, 8), 0)
    key = {"window_start": "1970-01-01T00:00:00+00:00", "city": "Oslo"}
    whole = {**key, "window_end": "1970-01-01T00:01:00+00:00"}
    assert place.messages() == [(key, {**whole, "n": 7}), (key, {**whole, "n": 8})]


def test_messages_of_an_unfinished_batch_are_never_read(place: TopicPlace, monkeypatch: pytest.MonkeyPatch):
    """The first driver stops between its messages and its commit; the next one repeats the batch, and is waited for."""
    first = place.started()
    first.write(NO_SPARK, numbers(1), 0)
    with monkeypatch.context() as patched:
        patched.setattr(TopicWriter, "_note", lambda writer, *_: writer.producer.flush(10) or 1 / 0)
        patched.setattr(first._opened[0], "producer", Unending(first._opened[0].producer))
        with pytest.raises(ZeroDivisionError):
            first.write(NO_SPARK, numbers(2, 3), 1)
    assert numbers_in(place) == [1]
    place.started(1).write(NO_SPARK, numbers(2, 3), 1)
    assert numbers_in(place) == [1, 2, 3]


class Unending:
    """A producer whose process dies before it can abort."""

    def __init__(self, producer: object) -> None:
        self.producer = producer

    def __getattr__(self, name: str) -> object:
        return getattr(self.producer, name)

    def abort_transaction(self, *_: object) -> None:
        """Leave the transaction open."""


def test_a_batch_whose_rows_fail_leaves_no_open_transaction(place: TopicPlace):
    sink = place.started()

    def messages():
        yield Message(None, b'{"n": 1}')
        raise OSError("a file of a worker is gone")

    with pytest.raises(OSError, match="a file of a worker is gone"):
        sink._opened[0].write(0, messages())
    other = place.started(query="another")
    other.write(NO_SPARK, numbers(5), 0)
    assert numbers_in(place) == [5]  # a reader would wait at the first message, were its transaction open


def test_a_note_that_the_broker_has_dropped_is_reported(
    kafka: Broker, place: TopicPlace, caplog: pytest.LogCaptureFixture
):
    """As it is when the topic was deleted and created again: its batches went with it."""
    place.started().write(NO_SPARK, numbers(0), 0)
    kafka.delete(place.topic)
    kafka.create(place.topic)
    with caplog.at_level(logging.WARNING):
        place.started(1).write(NO_SPARK, numbers(1), 1)
    assert f"topic {place.topic} has no note of this query's batches" in caplog.text
    assert numbers_in(place) == [1]


def test_a_checkpoint_that_is_older_than_the_topic_is_refused(place: TopicPlace):
    """The batch that a checkpoint comes to next may be in the topic already, but none after it."""
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.started(2)
    with pytest.raises(CheckpointError, match=r"up to 2, and the next batch of the checkpoint is 1: .* is older than"):
        place.started(1)


def test_more_messages_than_the_client_queues_are_one_batch(kafka: Broker, place: TopicPlace):
    sink = opened(Kafka(kafka.address, place.topic, options={"queue.buffering.max.messages": 100}))
    sink.write(NO_SPARK, numbers(*range(5_000)), 0)
    assert numbers_in(place) == list(range(5_000))


def test_messages_of_a_key_are_in_one_partition_in_order(kafka: Broker, place: TopicPlace):
    name = f"{place.topic}-parts"
    kafka.create(name, 3)
    sink = opened(Kafka(kafka.address, name, key="city, window_start"))
    sink.write(NO_SPARK, of(SCHEMA, *((0, f"c{n % 6}", n) for n in range(60))), 0)
    parts = [[json.loads(value or "") for _, value in kafka.committed(name, part)] for part in range(3)]
    places = Counter(city for part in parts for city in {row["city"] for row in part})
    assert set(places.values()) == {1}
    assert len(places) == 6
    for part in parts:
        for city in {row["city"] for row in part}:
            of_city = [row["n"] for row in part if row["city"] == city]
            assert of_city == sorted(of_city)
            assert len(of_city) == 10


@pytest.mark.slow
def test_a_broker_that_is_silent_fails_the_batch_which_comes_again(kafka: Broker, place: TopicPlace):
    sink = place.started(timeout="5 seconds")
    sink.write(NO_SPARK, numbers(0), 0)
    with kafka.silent(), pytest.raises(OSError, match=r"did not take batch 1 .*; it has none of its messages, or"):
        sink.write(NO_SPARK, numbers(1), 1)
    again = place.started(1)
    again.write(NO_SPARK, numbers(1), 1)
    again.write(NO_SPARK, numbers(2), 2)
    assert numbers_in(place) == [0, 1, 2]


def test_a_row_that_is_too_large_is_refused_with_its_batch(place: TopicPlace):
    sink = place.started()
    with pytest.raises(ConfigError, match=r"a row of batch 0 is too large for a message; raise the option message.max"):
        sink.write(NO_SPARK, of(SCHEMA, (0, "", 1), (0, "x" * 2_000_000, 2)), 0)
    assert numbers_in(place) == []


def test_a_missing_topic_and_a_silent_address_are_refused_with_the_remedy(kafka: Broker):
    with pytest.raises(
        ConfigError, match=r"has no topic 'absent'; create it \(kafka-topics.sh --create --topic absent"
    ):
        Kafka(kafka.address, "absent").open(QueryStart("q"))
    assert "absent" not in kafka.admin.list_topics(timeout=30).topics
    with pytest.raises(ConfigError, match=r"kafka 127.0.0.1:9 did not answer within 1 s .*check the address"):
        Kafka("127.0.0.1:9", "t", timeout="1 second").open(QueryStart("q"))


def test_a_login_is_from_the_environment(kafka: Broker, place: TopicPlace, monkeypatch: pytest.MonkeyPatch):
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "reader"}
    with pytest.raises(ConfigError, match=r'option sasl.password must be "\$NAME"') as raised:
        Kafka(kafka.guarded, place.topic, options={**login, "sasl.password": PASSWORD})
    assert PASSWORD not in str(raised.value)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    sink = opened(Kafka(kafka.guarded, place.topic, options={**login, "sasl.password": "$KAFKA_PASSWORD"}))
    sink.write(NO_SPARK, numbers(1), 0)
    assert numbers_in(place) == [1]


def amend(spark: SparkSession, folder: Path, columns: Mapping[str, object], query: sp.Query, **sinks: Any) -> None:
    """Run a stream of two batches to its end, of which the second has late rows of the first window."""
    times = pa.array([0, 1_000_000, 20_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC"))
    sent = pa.table({"ts": times, **columns})
    write_batches(folder / "in", [sent.slice(0, 3), sent.slice(3, 2)])
    rows = read_batches(spark, folder / "in", sent.schema)
    shape: dict[str, Any] = {"time": "ts", "window": "10 seconds", "progress": sp.Watermark("1 second")}
    finish_at_once([sp.stream(rows, query, checkpoint=folder / "checkpoint", **shape, **sinks)], drain=True)


def test_the_last_message_of_each_key_is_the_current_answer_of_an_aggregate(
    spark: SparkSession, tmp_path: Path, kafka: Broker, place: TopicPlace
):
    """As a compacted topic keeps them; the last batch amends a window, and gives it one more key."""
    sent = {"city": ["Oslo", "Rome", "Oslo", "Rome", "Bern"]}
    output = sp.Kafka(kafka.address, place.topic, key=["window_start", "city"])
    amend(spark, tmp_path, sent, sp.Aggregate("city", n=sp.count()), late=sp.Amend("1 minute"), output=output)
    found = [(key, json.loads(value or "")) for key, value in kafka.committed(place.topic)]
    assert [(row["version"], row["city"], row["n"]) for _, row in found[:2]] == [(0, "Oslo", 1), (0, "Rome", 1)]
    last = dict(found).values()
    assert sorted((row["window_start"][17:19], row["city"], row["n"]) for row in last) == [
        ("00", "Bern", 1), ("00", "Oslo", 1), ("00", "Rome", 2), ("20", "Oslo", 1)
    ]  # fmt: skip


def test_the_last_message_of_each_key_is_the_current_answer_of_any_query_with_tombstones(
    spark: SparkSession, tmp_path: Path, kafka: Broker, place: TopicPlace
):
    """The last batch amends a window of a skyline, whose best row changes, and one of which a row is removed."""
    sent = {"shop": ["a", "b", "a", "c", "d"], "price": [5, 5, 5, 4, 4]}
    output = sp.Kafka(kafka.address, place.topic, key=["window_start", "shop"], tombstones=True)
    amend(spark, tmp_path, sent, sp.Skyline("price MIN"), late=sp.Amend("1 minute", changes=True), output=output)
    found = kafka.committed(place.topic)
    gone = [json.loads(key or "")["shop"] for key, value in found if value is None]
    assert sorted(gone) == ["a", "b"]
    last = [json.loads(value) for value in dict(found).values() if value is not None]
    assert sorted((row["window_start"][17:19], row["shop"]) for row in last) == [("00", "c"), ("00", "d"), ("20", "a")]


def test_a_batch_with_tombstones_that_comes_again_is_there_once(kafka: Broker, place: TopicPlace):
    changes = pa.schema([("action", pa.string()), ("action_time", pa.timestamp("us")), ("id", pa.int64())])
    found = pa.table({"action": ["ADD", "ADD", "DEL"], "action_time": [0, 1, 2], "id": [1, 2, 1]}).cast(changes)
    for start in range(2):
        sink = opened(Kafka(kafka.address, place.topic, key="id", tombstones=True), f"driver-{start}", schema=changes)
        sink.write(NO_SPARK, BatchRows(changes, 3, (), (found,)), 0)
    assert [(key, value is None) for key, value in kafka.committed(place.topic)] == [
        (b'{"id": 1}', False), (b'{"id": 2}', False), (b'{"id": 1}', True)
    ]  # fmt: skip
