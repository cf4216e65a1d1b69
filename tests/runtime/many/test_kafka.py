"""Partitions of a real broker as inputs: planned and read as a batch's driver and tasks do it, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from tests.runtime.many.read_batches import NOTHING, N, kept, parts_of, planner, read_in_step, values_of
from tests.runtime.many.schema_messages import avro, record
from tests.runtime.receiving import logs
from tests.runtime.receiving.authority import authority, signed
from tests.servers import schema_registry as registries
from tests.servers.kafka import PASSWORD, Broker, broker

from skypane.runtime.spark.sources.many import kafka as kind
from skypane.runtime.spark.sources.many.discovery import from_text, listed, to_text
from skypane.runtime.spark.sources.many.event_times import EventTimes
from skypane.runtime.spark.sources.many.kafka import TopicSpec
from skypane.runtime.spark.sources.many.kafka_client import ClusterClient, KafkaPartition
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import CheckpointError, ConfigError


def numbers(*values: int) -> list[bytes | None]:
    return [b'{"n": %d}' % n for n in values]


def create(kafka: Broker, name: str, *values: int) -> None:
    """Create a topic of one partition with these numbers."""
    kafka.create(name)
    kafka.send(name, numbers(*values))


def transactional(kafka: Broker, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": name, "log_level": 2})
    producer.init_transactions()
    return producer


def begin(producer: Producer, name: str, values: Iterable[int]) -> None:
    """Send numbers to partition 0 in a transaction, which has not ended then."""
    producer.begin_transaction()
    for n in values:
        producer.produce(name, b'{"n": %d}' % n, partition=0)
    producer.flush()


def topic(broker: Broker, name: str, /, **more: object) -> dict[str, object]:
    return {"kafka": broker.address, "topic": name, "timeout": "5 seconds", **more}


def rows(plan: Planner, start: Offsets, end: Offsets) -> list[tuple[str, int]]:
    """Return (input, n) of all rows of a batch, as its tasks read them; n is minus the place of what is malformed."""
    parts = parts_of(plan, start, end, N)
    return [(part.input.name, n) for part, found in parts for n in values_of(found, lambda one: -one.offset)]


def numbers_of(plan: Planner, start: Offsets, end: Offsets) -> list[int]:
    return [n for _, n in rows(plan, start, end)]


def until(true: Callable[[], bool]) -> None:
    logs.until(true, "it does not become so")


@pytest.fixture
def name() -> str:
    return f"t-{uuid4().hex[:8]}"


def test_topics_and_partitions_are_found_as_they_come_and_every_message_is_read_once(kafka: Broker, name: str):
    kafka.create(f"{name}-a", 3)
    for partition in range(3):
        kafka.send(f"{name}-a", numbers(*range(partition * 100, partition * 100 + 5)), partition)
    plan = planner(topic(kafka, f"{name}-*"))
    first = plan.latest(NOTHING, None)
    assert first.at == {f"{name}-a[{partition}]": 5 for partition in range(3)}
    create(kafka, f"{name}-b", 7)
    second = plan.latest(first, None)
    found = rows(plan, NOTHING, first) + rows(plan, first, second)
    assert sorted(found) == [(f"{name}-a[{p}]", p * 100 + n) for p in range(3) for n in range(5)] + [
        (f"{name}-b[0]", 7)
    ]
    assert plan.latest(second, None) == second


@pytest.mark.slow
def test_a_hot_topic_starves_no_one_and_a_batch_is_the_same_for_another_driver(kafka: Broker, name: str):
    create(kafka, f"{name}-hot", *range(3000))
    create(kafka, f"{name}-cold", 1, 2)
    entries = topic(kafka, f"{name}-hot", name="hot"), topic(kafka, f"{name}-cold")
    plan = planner(*entries)
    first = plan.latest(NOTHING, 100)
    assert first.at == {"hot[0]": 98, f"{name}-cold[0]": 2}
    kafka.send(f"{name}-cold", numbers(3))
    second = plan.latest(first, 100)
    again = rows(planner(*entries), first, kept(second))
    assert sorted(again) == sorted(rows(plan, first, second))
    assert [n for of, n in again if of == "hot[0]"] == list(range(98, 98 + 99))


@pytest.mark.slow
def test_partitions_of_unequal_size_stay_together_in_event_time(kafka: Broker, name: str):
    """1:2:10 messages over the same 3,000 s, 300 a batch; the smallest has gaps: transactions that were aborted."""
    kafka.create(name, 3)
    counts = {0: 300, 1: 600, 2: 3000}
    producer = transactional(kafka, name)
    for partition, count in counts.items():
        times = range(0, 3000, 3000 // count)
        if partition:
            kafka.send(name, numbers(*times), partition)
            continue
        for first in range(0, count, 20):
            for end in (producer.abort_transaction, producer.commit_transaction):
                begin(producer, name, times[first : first + 20])
                end()
    plan = planner(topic(kafka, name), times=EventTimes(N, "n"))
    found, latest = read_in_step(plan, 300, partial(numbers_of, plan))
    assert len(found) == sum(counts.values())
    assert latest < 200


def test_messages_of_avro_have_the_offsets_of_the_topic_and_are_read_in_step_by_event_time(kafka: Broker, name: str):
    """Two partitions, 1:10 messages over the same time, with tombstones between and a message that is not of Avro."""
    kafka.create(name, 2)
    with registries.running() as registry:
        schema = record([("n", "long"), ("more", "string")])
        few = avro(registry.url, schema, *({"n": n, "more": "x"} for n in range(0, 3000, 10)))
        many = avro(registry.url, schema, *({"n": n, "more": "y"} for n in range(3000)))
        kafka.send(name, [value for one in few for value in (one, None)], 0)
        kafka.send(name, [*many[:100], b"no avro", *many[100:]], 1)
        plan = planner(topic(kafka, name, format="avro", registry=registry.url), times=EventTimes(N, "n"))
        found, latest = read_in_step(plan, 300, partial(numbers_of, plan))
        assert sorted(found) == sorted([-100, *range(0, 3000, 10), *range(3000)])
        assert latest < 500
        registry.broken = 503
        assert rows(plan, NOTHING, Offsets({f"{name}[1]": 100})) == [(f"{name}[1]", n) for n in range(100)]


def test_aborted_messages_markers_and_tombstones_are_gaps(kafka: Broker, name: str):
    """Also where a range begins or ends in a gap: every range of the offsets is read by itself."""
    kafka.create(name)
    producer = transactional(kafka, name)
    for at in range(3):
        begin(producer, name, range(at * 10, at * 10 + 3))
        (producer.abort_transaction if at == 1 else producer.commit_transaction)()
    kafka.send(name, [None, *numbers(30)])
    plan = planner(topic(kafka, name))
    assert plan.latest(NOTHING, None).at == {f"{name}[0]": 14}
    held = {0: 0, 1: 1, 2: 2, 8: 20, 9: 21, 10: 22, 13: 30}
    for start in (0, 2, 3, 4, 9, 11, 12):
        for end in (3, 4, 5, 8, 9, 11, 12, 13, 14):
            if start < end:
                found = numbers_of(plan, Offsets({f"{name}[0]": start}), Offsets({f"{name}[0]": end}))
                assert found == [n for offset, n in held.items() if start <= offset < end], (start, end)


def test_what_an_open_transaction_holds_is_not_there_yet(kafka: Broker, name: str):
    create(kafka, name, 1)
    producer = transactional(kafka, name)
    begin(producer, name, [2])
    plan = planner(topic(kafka, name))
    first = plan.latest(NOTHING, None)
    assert rows(plan, NOTHING, first) == [(f"{name}[0]", 1)]
    producer.commit_transaction()
    until(lambda: plan.latest(first, None) != first)
    assert rows(plan, first, plan.latest(first, None)) == [(f"{name}[0]", 2)]


def test_a_compacted_topic_is_read_past_what_is_gone(kafka: Broker, name: str):
    quick = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    kafka.create(name, 1, quick)
    kafka.send(name, numbers(*range(50)), keys=[b"k"] * 50)
    plan = planner(topic(kafka, name))
    end = plan.latest(NOTHING, None)

    def compacted() -> bool:
        kafka.send(name, numbers(99), keys=[b"other"])  # the newest segment is not compacted
        return len(rows(plan, NOTHING, end)) < 50

    until(compacted)
    assert rows(plan, NOTHING, end)[-1] == (f"{name}[0]", 49)


def test_a_message_that_is_not_a_row_is_reported_with_its_offset(kafka: Broker, name: str):
    kafka.create(name)
    kafka.send(name, [*numbers(1), b"no json", *numbers(3), b'{"n": 1}{"n": 2}', *numbers(5)])
    for form, expected in (("json", [-3, -1, 1, 3, 5]), ("csv", [-4, -3, -2, -1, 0])):
        plan = planner(topic(kafka, name, format=form))
        assert sorted(numbers_of(plan, NOTHING, plan.latest(NOTHING, None))) == expected


def test_retention_that_has_passed_the_offset_is_an_error_or_is_skipped_and_counted(kafka: Broker, name: str):
    create(kafka, name, *range(10))
    entry = topic(kafka, name)
    place = Offsets({f"{name}[0]": 2})
    begun = planner(entry).latest(place, 6)
    kafka.cut(name, 5)
    with pytest.raises(CheckpointError, match=r"begins at offset 5, but was read up to 2: messages between .*on_loss"):
        planner(entry).latest(place, None)
    with pytest.raises(CheckpointError, match=r"a started batch needs offsets 2 to 8.*on_loss=\"skip\""):
        rows(planner(entry), place, begun)
    plan = planner(entry, on_loss="skip")
    assert numbers_of(plan, place, begun) == [5, 6, 7]
    after = plan.latest(place, 3)
    assert (after.at, after.lost) == ({f"{name}[0]": 8}, 1)
    assert numbers_of(planner(entry), place, kept(after)) == [5, 6, 7]


def test_an_input_whose_beginning_was_removed_starts_with_the_rest(kafka: Broker, name: str):
    create(kafka, name, *range(10))
    kafka.cut(name, 4)
    plan = planner(topic(kafka, name))
    end = plan.latest(NOTHING, 3)
    assert numbers_of(planner(topic(kafka, name)), NOTHING, kept(end)) == [4, 5, 6]
    assert numbers_of(plan, end, plan.latest(end, 3)) == [7, 8, 9]


def test_a_deleted_topic_is_an_error_or_is_skipped_and_counted_and_a_new_one_is_begun(kafka: Broker, name: str):
    create(kafka, name, *range(5))
    pattern = topic(kafka, f"{name}*")
    place = planner(pattern).latest(NOTHING, None)
    kafka.delete(name)
    until(lambda: name not in kafka.admin.list_topics().topics)
    for entry in (topic(kafka, name), pattern):
        with pytest.raises(CheckpointError, match=f"topic {name} of .* was deleted after 5 offsets were read"):
            planner(entry).latest(place, None)
    with pytest.raises(CheckpointError, match="is missing, but a started batch needs it up to 5"):
        planner(pattern).assigned(NOTHING, place)
    plan = planner(pattern, on_loss="skip")
    after = plan.latest(place, None)
    assert (after.at, after.lost) == ({f"{name}[0]": 0}, 1)
    assert plan.assigned(place, after) == []
    assert plan.latest(after, None) == after
    create(kafka, name, 7)
    assert numbers_of(plan, after, plan.latest(after, None)) == [7]


def test_a_topic_that_is_made_again_is_not_taken_for_the_old_one(kafka: Broker, name: str):
    create(kafka, name, 1)
    plan = planner(topic(kafka, name))
    with pytest.raises(CheckpointError, match="ends at offset 1, but was read up to 9: its topic was deleted"):
        plan.latest(Offsets({f"{name}[0]": 9}), None)


def test_a_listed_topic_may_come_later(kafka: Broker, name: str):
    plan = planner(topic(kafka, name))
    assert plan.latest(NOTHING, None) == NOTHING
    create(kafka, name, 1)
    assert rows(plan, NOTHING, plan.latest(NOTHING, None)) == [(f"{name}[0]", 1)]


def test_a_broker_that_never_answered_is_reported_in_an_error():
    message = r"kafka 127.0.0.1:1 did not answer within 0.3 s \(.*Connection refused.*check the address"
    with pytest.raises(ConfigError, match=message):
        planner({"kafka": "127.0.0.1:1", "topic": "t", "timeout": "300 ms"}).latest(NOTHING, None)


@pytest.mark.slow
def test_inputs_of_a_silent_broker_wait_while_others_continue(kafka: Broker, name: str, tmp_path: Path):
    """And go on when it is back; a batch that has begun says what it waits for."""
    create(kafka, name, 1, 2)
    file = tmp_path / "a.csv"
    file.write_text("1\n")
    plan = planner(topic(kafka, name, timeout="500 ms"), {"path": str(file), "name": "a"})
    first = plan.latest(NOTHING, 3)
    assert first.at == {f"{name}[0]": 2, "a": 2}
    kafka.send(name, numbers(3))
    begun = plan.latest(first, 3)
    with kafka.silent():
        message = rf"sent nothing for 0\.5 s, but a started batch needs {name}\[0\] up to offset 3"
        with pytest.raises(TimeoutError, match=message):
            rows(plan, first, begun)
        for lines in range(2, 5):
            file.write_text("1\n" * lines)
            place = plan.latest(first, None)
            assert place.at == {f"{name}[0]": 2, "a": 2 * lines}
    until(lambda: plan.latest(place, None) != place)
    assert rows(plan, place, plan.latest(place, None)) == [(f"{name}[0]", 3)]


@pytest.mark.slow
def test_a_partition_without_a_leader_is_named_and_waits_while_the_others_continue(
    kafka: Broker, name: str, caplog: pytest.LogCaptureFixture
):
    """Its broker leaves a cluster of two, and comes back."""
    with broker(kafka.jars) as first, broker(kafka.jars, beside=first) as second:
        first.create(name, nodes=[1, 2])
        for partition in range(2):
            first.send(name, numbers(partition), partition)
        plan = planner(topic(first, name))
        until(lambda: len(plan.latest(NOTHING, None).at) == 2)
        both = plan.latest(NOTHING, None)
        first.send(name, numbers(3), 1)
        caplog.clear()
        second.leave()
        first.send(name, numbers(2), 0)
        one = plan.latest(both, None)
        assert one.at == {f"{name}[0]": 2, f"{name}[1]": 1}
        assert plan.latest(one, None) == one
        assert rows(plan, both, one) == [(f"{name}[0]", 2)]
        (told,) = [text for text in caplog.messages if f"{name}[1]" in text]
        assert re.search(rf"has no offsets of {name}\[1\] \(.*[Ll]eader.*\): it is paused", told)
        bounded = planner(topic(first, name))  # as of a run with the trigger "available now"
        bounded.stop_here(both)
        unread = planner(topic(first, name))
        unread.stop_here(NOTHING)
        second.start()
        until(lambda: plan.latest(one, None) != one)
        assert bounded.latest(both, None) == one
        assert unread.latest(NOTHING, None).at == {f"{name}[0]": 2}
        assert rows(plan, one, plan.latest(one, None)) == [(f"{name}[1]", 3)]
        assert f"has offsets of {name}[1] again" in caplog.messages[-1]


@pytest.mark.slow
def test_a_cluster_without_a_leader_for_any_partition_is_not_called_unreachable(
    kafka: Broker, name: str, caplog: pytest.LogCaptureFixture
):
    """A query that has read it waits and goes on; one that starts now gets an error that says what to check."""
    with broker(kafka.jars) as first, broker(kafka.jars, beside=first) as second:
        first.create(name, nodes=[2])
        first.send(name, numbers(1))
        plan = planner(topic(first, name))
        until(lambda: plan.latest(NOTHING, None) != NOTHING)
        read = plan.latest(NOTHING, None)
        caplog.clear()
        second.leave()
        assert plan.latest(read, None) == plan.latest(read, None) == read
        (told,) = caplog.messages
        assert re.search(rf"no offsets of any partition \({name}\[0\]: .*[Ll]eader.*\): its inputs are paused", told)
        started = planner(topic(first, name, timeout="4 seconds"))  # another timeout is another client
        with pytest.raises(ConfigError, match=rf"{name}\[0\]: .*[Ll]eader.*check that the brokers that lead"):
            started.latest(NOTHING, None)
        second.start()
        first.send(name, numbers(2))
        until(lambda: plan.latest(read, None) != read)
        assert rows(plan, read, plan.latest(read, None)) == [(name + "[0]", 2)]


def test_an_abandoned_request_is_sent_again(kafka: Broker, name: str, monkeypatch):
    """The topics come, the offsets do not: each request has its own patience."""
    create(kafka, name, 1)
    plan = planner(topic(kafka, name, timeout="4 seconds"))
    first = plan.latest(NOTHING, None)
    kafka.send(name, numbers(2))
    offsets = ClusterClient._offsets
    lost = [TimeoutError(), TimeoutError()]

    def first_lost(self: ClusterClient, *request: Any) -> dict[KafkaPartition, int]:
        if lost:
            raise lost.pop()
        return offsets(self, *request)

    monkeypatch.setattr(ClusterClient, "_offsets", first_lost)
    assert plan.latest(first, None) == first
    until(lambda: plan.latest(first, None) != first)


def test_a_login_is_from_the_environment_and_is_shown_nowhere(kafka: Broker, name: str, monkeypatch, tmp_path: Path):
    create(kafka, name, 1)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "reader"}
    entry = {**topic(kafka, name), "kafka": kafka.guarded, "options": {**login, "sasl.password": "$KAFKA_PASSWORD"}}
    plan = planner(entry)
    end = plan.latest(NOTHING, None)
    assert rows(plan, NOTHING, end) == [(f"{name}[0]", 1)]
    shown = repr((plan.found, plan.listing(), plan.assigned(NOTHING, end), plan.state)) + json.dumps(end.to_json())
    assert PASSWORD not in shown + to_text(plan.listing())
    assert from_text(to_text(plan.listing())) == plan.listing()
    plain = {**entry, "options": {**login, "sasl.password": PASSWORD}}
    message = r"option sasl\.password would be shown in Spark's plan; give the name of an env"
    with pytest.raises(ConfigError, match=message) as raised:
        to_text(listed([plain]))
    assert PASSWORD not in str(raised.value)
    with pytest.raises(ConfigError, match=r"option sasl\.password would be shown in Spark's plan"):
        from_text(json.dumps([plain]))  # as an option that names the list itself
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps([plain]))  # a file of the user's own
    plan = Planner(lambda: from_text(str(path)), 2)
    assert rows(plan, NOTHING, plan.latest(NOTHING, None)) == [(f"{name}[0]", 1)]
    wrong = {**entry, "timeout": "2 seconds", "options": {**login, "sasl.password": "wrong-one"}}
    with pytest.raises(ConfigError, match=r"did not answer within 2 s .*Authentication failed") as raised:
        planner(wrong).latest(NOTHING, None)
    assert "wrong-one" not in str(raised.value)
    monkeypatch.delenv("KAFKA_PASSWORD")
    with pytest.raises(ConfigError, match="environment variable KAFKA_PASSWORD, which is not set"):
        planner(entry).latest(NOTHING, None)


@pytest.mark.slow
def test_a_cluster_is_read_over_tls_if_its_authority_is_trusted(kafka: Broker, name: str, tmp_path: Path, monkeypatch):
    ca = authority(tmp_path)
    certificate, key = signed(ca, "broker")
    (tmp_path / "keystore.pem").write_text(key.read_text() + certificate.read_text())
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    with broker(kafka.jars, tmp_path / "keystore.pem") as encrypted:
        encrypted.create(name)
        encrypted.send(name, numbers(1, 2))
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "reader",
                 "sasl.password": "$KAFKA_PASSWORD", "ssl.ca.location": str(ca)}  # fmt: skip
        entry = {**topic(encrypted, name), "kafka": encrypted.guarded, "options": login}
        plan = planner(entry)
        assert rows(plan, NOTHING, plan.latest(NOTHING, None)) == [(f"{name}[0]", 1), (f"{name}[0]", 2)]
        (tmp_path / "other").mkdir()
        other = {**entry, "options": {**login, "ssl.ca.location": str(authority(tmp_path / "other"))}}
        with pytest.raises(ConfigError, match="certificate verify failed"):
            planner(other).latest(NOTHING, None)


def test_an_option_unknown_to_the_client_is_refused():
    with pytest.raises(ConfigError, match=r'options of kafka h:1: .*"secure\.protocol"'):
        planner({"kafka": "h:1", "topic": "a", "options": {"secure.protocol": "ssl"}}).latest(NOTHING, None)


def test_topics_listed_twice_or_called_the_same_are_refused(kafka: Broker, name: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=f"lists '{kafka.address}/{name}' twice"):
        planner(topic(kafka, name), topic(kafka, name, name="b"))
    with pytest.raises(ConfigError, match="lists 'b' twice"):
        planner(topic(kafka, "x", name="b"), topic(kafka, "y", name="b"))
    assert len(listed([topic(kafka, "x-*"), {**topic(kafka, "x-*"), "kafka": kafka.guarded}])) == 2
    kafka.create(name)
    file = tmp_path / "a.csv"
    file.touch()
    with pytest.raises(ConfigError, match=rf"are both called {name}\[0\]; name one of them differently"):
        planner(topic(kafka, name), {"path": str(file), "name": f"{name}[0]"}).latest(NOTHING, None)


def test_a_pattern_leaves_to_a_listed_topic_what_is_its_own(kafka: Broker, name: str):
    kafka.create(f"{name}-a")
    kafka.create(f"{name}-b")
    plan = planner(topic(kafka, f"{name}-*"), topic(kafka, f"{name}-b", name="b"))
    entries = [one for one in plan.listing() if isinstance(one, TopicSpec)]
    assert {one.input.name for one in kind.look(entries, {})} >= {"b[0]"}
    plan.latest(NOTHING, None)
    assert set(plan.found) == {f"{name}-a[0]", "b[0]"}
