"""Messages of a real mosquitto: acknowledged when they are on disk, held by the broker while nobody receives."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from tests.runtime.receiving.broker import mosquitto
from tests.runtime.receiving.logs import lines, receiver, shown_in, until

from skypane.runtime.receiving.mqtt import IN_FLIGHT
from skypane.runtime.receiving.receiver import Receiver, _named
from skypane.runtime.receiving.write_budget import WriteBudget
from skypane.types import ConfigError


@contextmanager
def publisher(port: int) -> Iterator[Client]:
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


def publish(client: Client, topic: str, texts: list[str]) -> None:
    """Publish, and wait until the broker has acknowledged it."""
    for sent in [client.publish(topic, text, qos=1) for text in texts]:
        sent.wait_for_publish(30)


def given(folder: Path, port: int, **more: Any) -> dict[str, Any]:
    one = {"name": "meters", "mqtt": f"mqtt://127.0.0.1:{port}", "topic": "meters/+"}
    return {"folder": str(folder / "received"), "inputs": [one | more]}


@contextmanager
def connected(folder: Path, port: int, **more: Any) -> Iterator[tuple[Client, Receiver]]:
    """Run a broker and a receiver that is connected to it; yield a client of the broker, and the receiver."""
    with (
        mosquitto(folder / "broker", port),
        publisher(port) as client,
        Receiver(given(folder, port, **more)) as receiving,
    ):
        until(lambda: receiving.seen[0].state == "receiving", "it is not connected")
        yield client, receiving


def numbers(folder: Path) -> list[int]:
    return [int(line) for line in lines(folder)]


@pytest.mark.slow
def test_what_a_broker_holds_while_a_receiver_is_stopped_or_killed_is_there(tmp_path, port):
    """Stops leave nothing twice; a kill, what was written and not acknowledged at most."""
    log = tmp_path / "received" / "meters"
    with mosquitto(tmp_path / "broker", port), publisher(port) as client:
        with Receiver(given(tmp_path, port)) as receiving:
            until(lambda: receiving.seen[0].state == "receiving", "it is not connected")
        publish(client, "meters/a", [str(n) for n in range(500)])
        with receiver(given(tmp_path, port), tmp_path) as process:
            until(lambda: len(lines(log)) == 500, "messages are missing")
            for n in range(500, 900):
                client.publish("meters/b", str(n), qos=1)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        publish(client, "meters/a", [str(n) for n in range(900, 1_000)])
        with receiver(given(tmp_path, port), tmp_path) as process:
            until(lambda: len(lines(log)) >= 1_000, "messages are missing")
            assert numbers(log) == list(range(1_000))  # each once over a clean stop
            for n in range(1_000, 4_000):
                client.publish("meters/a", str(n), qos=1)
            until(lambda: len(lines(log)) >= 1_200, "messages are missing")
            process.kill()
        publish(client, "meters/a", ["4000"])
        with Receiver(given(tmp_path, port)):
            until(lambda: "4000" in lines(log)[-1100:], "messages are missing")
    found = numbers(log)
    assert set(found) == set(range(4_001))
    twice = [n for n, count in Counter(found).items() if count > 1]
    assert len(found) == 4_001 + len(twice)
    assert twice == list(range(twice[0], twice[-1] + 1)) if twice else True  # a window that was under way


def test_each_topic_is_an_input_and_a_message_a_line(tmp_path, port):
    with connected(tmp_path, port, by_topic=True, topic="meters/#") as (client, receiving):
        publish(client, "meters/a", ['{"n": 1,\n "m": 2}', "", '{"n": 2}\r\n'])
        publish(client, "meters/b/c", ["x"])
        publish(client, "meters/" + "long" * 100, ["y"])
        until(lambda: sum(one.lines for one in receiving.seen) == 4, "messages are missing")
        names = [one.name for one in receiving.seen]
        assert names[:3] == ["meters", "meters/meters%2Fa", "meters/meters%2Fb%2Fc"]
        assert names[3].startswith("meters/meters%2Flonglong")
        assert lines(tmp_path / "received" / names[3]) == ["y"]
        with pytest.raises(ConfigError, match="is locked by another receiver"):
            Receiver(given(tmp_path, port, by_topic=True)).start()
    assert lines(tmp_path / "received/meters/meters%2Fa") == ['{"n": 1,  "m": 2}', '{"n": 2}']
    assert lines(tmp_path / "received/meters/meters%2Fb%2Fc") == ["x"]


def test_more_topics_than_may_be_open_are_each_a_log_with_all_its_messages(tmp_path, port, monkeypatch):
    """Two logs at once for nine topics: those that nothing comes for are closed, and opened again."""
    monkeypatch.setattr("skypane.runtime.receiving.receiver.most_open", lambda: 2)
    with connected(tmp_path, port, by_topic=True) as (client, receiving):
        for n in range(90):
            client.publish(f"meters/{n % 9}", str(n), qos=1)
        until(lambda: sum(one.lines for one in receiving.seen) == 90, "messages are missing")
        assert len(receiving._topics["meters"]) == 2
    for topic in range(9):
        assert numbers(tmp_path / "received/meters" / f"meters%2F{topic}") == list(range(topic, 90, 9))


class Watched(WriteBudget):
    """A budget that records how much of it was taken at most, and how often."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.settings = 0
        self.most_taken = 0

    def take(self, size: int) -> None:
        self.settings += 1
        super().take(size)
        self.most_taken = max(self.most_taken, self._taken)


def test_messages_wait_with_the_broker_when_many_bytes_wait_to_be_written(tmp_path, port, monkeypatch):
    """A disk that is slow lets five messages ask for the room of four."""
    rooms, disk, fsync = list[Watched](), threading.Event(), os.fsync

    def made(_: int) -> WriteBudget:
        rooms.append(Watched(1_000))
        return rooms[-1]

    monkeypatch.setattr("skypane.runtime.receiving.mqtt.WriteBudget", made)
    with connected(tmp_path, port) as (client, receiving):
        seen = receiving.seen[0]
        monkeypatch.setattr(os, "fsync", lambda handle: disk.wait(30) and fsync(handle))
        publish(client, "meters/a", [str(n) for n in range(50)])
        until(lambda: rooms[-1].settings > 4, "nothing comes")
        disk.set()
        until(lambda: seen.lines == 50, "messages are missing")
        assert rooms[-1].most_taken <= 1_000
        publish(client, "meters/a", ["7" * 4_000])  # more than there is room for comes alone
        until(lambda: seen.lines == 51, "messages are missing")
        assert rooms[-1].most_taken < 4_300
    assert numbers(tmp_path / "received/meters")[:50] == list(range(50))


def test_a_broker_gets_the_maximum_message_size_and_sends_the_others(tmp_path, port, monkeypatch):
    monkeypatch.setattr("skypane.runtime.receiving.mqtt.LARGEST", 1_000)
    with connected(tmp_path, port) as (client, receiving):
        publish(client, "meters/a", ["1", "2" * 2_000, "3"])
        until(lambda: receiving.seen[0].lines == 2, "messages are missing")
    assert numbers(tmp_path / "received/meters") == [1, 3]


@pytest.mark.usefixtures("impatient")
def test_a_topic_whose_folder_cannot_be_made_is_reported_and_its_messages_wait(tmp_path, port):
    folder = tmp_path / "received" / "meters" / "meters%2Fa"
    folder.parent.mkdir(parents=True)
    folder.touch()
    with connected(tmp_path, port, by_topic=True) as (client, receiving):
        publish(client, "meters/a", ["1"])
        until(lambda: "cannot write to" in receiving.seen[0].reason, "it is not reported")
        folder.unlink()
        until(lambda: sum(one.lines for one in receiving.seen) == 1, "messages are missing")
    assert lines(folder) == ["1"]


@pytest.mark.parametrize("others", [1, IN_FLIGHT + 100])
def test_topics_beyond_the_most_are_rejected_into_one_log_and_hold_up_no_other(tmp_path, port, caplog, others: int):
    folder = tmp_path / "received" / "meters"
    with mosquitto(tmp_path / "broker", port), publisher(port) as client:
        for _ in range(2):
            with Receiver(given(tmp_path, port, by_topic=True, most_topics=2)) as receiving:
                until(lambda: receiving.seen[0].state == "receiving", "it is not connected")
                for topic in ("a", "b"):
                    publish(client, f"meters/{topic}", ["1"])
                for number in range(others):
                    client.publish(f"meters/{number}", b"\xff" if number else b'"x"', qos=1)
                publish(client, "meters/a", ["2"])
                until(partial(_has, receiving, others + 3), "messages are missing")
    assert (lines(folder / "meters%2Fa"), lines(folder / "meters%2Fb")) == (["1", "2"] * 2, ["1", "1"])
    rejected = [json.loads(line) for line in lines(folder / ".rejected")]
    assert [one["line"] for one in rejected] == ['"x"', *["\\xff"] * (others - 1)] * 2
    assert [one["topic"] for one in rejected] == [f"meters/{number}" for number in range(others)] * 2
    assert sorted(one.name for one in folder.iterdir() if one.is_dir()) == [".rejected", "meters%2Fa", "meters%2Fb"]
    assert caplog.text.count("topic 'meters/0' exceeds most_topics") == 2


def _has(receiving: Receiver, fresh: int) -> bool:
    return sum(one.lines for one in receiving.seen) == fresh


@pytest.mark.parametrize("more", [{}, {"by_topic": True}], ids=["one log", "by topic"])
def test_a_retained_message_is_there_once_whatever_starts_and_connections(
    tmp_path: Path, port: int, more: dict[str, Any]
):
    with mosquitto(tmp_path / "broker", port), publisher(port) as client:
        client.publish("meters/a", "0", qos=1, retain=True).wait_for_publish(30)
        for start, fresh in enumerate((2, 1, 1)):
            with Receiver(given(tmp_path, port, **more)) as receiving:
                until(lambda: receiving.seen[0].state == "receiving", "it is not connected")
                client.publish("meters/a", str(start + 1), qos=1, retain=True).wait_for_publish(30)
                until(partial(_has, receiving, fresh), "a message is missing")
    folder = tmp_path / "received" / "meters"
    assert lines(folder / "meters%2Fa" if more else folder) == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("topic", "folder"), [("..", "meters/%2E%2E"), (".receiver", "meters/%2Ereceiver"),
                                              ("a/../b", "meters/a%2F%2E%2E%2Fb")])  # fmt: skip
def test_no_topic_leads_out_of_its_folder(topic: str, folder: str):
    assert _named("meters", topic) == folder


def test_a_full_disk_leaves_messages_with_the_broker_until_there_is_room(tmp_path, port, monkeypatch):
    monkeypatch.setattr("skypane.runtime.receiving.receiver.FIRST_WAIT", 0.05)
    with connected(tmp_path, port) as (client, receiving):
        seen = receiving.seen[0]
        publish(client, "meters/a", ["0"])
        until(lambda: seen.lines == 1, "messages are missing")
        real = os.fsync
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        publish(client, "meters/a", ["1", "2"])
        until(lambda: seen.failures > 1, "the disk is not full")
        assert seen.reason == "No space left on device"
        monkeypatch.setattr(os, "fsync", real)
        until(lambda: seen.lines == 3, "messages are missing")
        assert seen.again > 0
    assert lines(tmp_path / "received/meters") == ["0", "1", "2"]


@pytest.mark.usefixtures("impatient")
def test_a_broker_that_restarts_or_refuses_is_tried_again_and_no_secret_is_reported(tmp_path, port, caplog):
    settings = given(tmp_path, port, user="$METERS_USER", password="${METERS_PASSWORD}")  # noqa: S106 - a name
    environment = {"METERS_USER": "meter", "METERS_PASSWORD": "swordfish"}
    message = "input meters: user is in the environment variable METERS_USER, which is not set"
    with pytest.raises(ConfigError, match=message):
        Receiver(settings, {})
    with Receiver(settings, environment) as receiving:
        seen = receiving.seen[0]
        until(lambda: "refused" in seen.reason, "it is not reported")
        # nobody may log in here
        with mosquitto(tmp_path / "broker", port, "allow_anonymous false"):
            until(lambda: "Not authorized" in seen.reason or "Bad user name" in seen.reason, "it is not reported")
        with mosquitto(tmp_path / "broker", port), publisher(port) as client:
            until(lambda: seen.state == "receiving", "it is not connected")
            publish(client, "meters/a", ["1"])
            until(lambda: seen.lines == 1, "messages are missing")
    shown = shown_in(tmp_path / "received", caplog)
    assert "swordfish" not in shown
    assert "meter," not in shown
