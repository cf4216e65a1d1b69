"""Receivers killed again and again while a broker gives and a reader reads."""

from __future__ import annotations

import random
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.runtime.receiving.broker import mosquitto
from tests.runtime.receiving.logs import content, lines, receiver, until
from tests.runtime.receiving.test_mqtt import given, publisher

from skypane.runtime.receiving.receiver import Receiver

KILLS = 6


def _has(log: Path, enough: int) -> bool:
    return len(content(log)) > enough


@pytest.mark.slow
def test_no_message_is_lost_and_no_reader_sees_what_vanishes_over_random_kills(tmp_path, port):
    chance, log = random.Random(7), tmp_path / "received" / "meters"
    settings = given(tmp_path, port) | {"segment_bytes": 8192}
    total, ended, vanished = 20_000, threading.Event(), list[bytes]()

    def read() -> None:
        before = b""
        while not ended.wait(0.02):
            now = content(log)
            if not now.startswith(before):
                vanished.append(before)
            before = now

    with mosquitto(tmp_path / "broker", port), publisher(port) as client:
        with Receiver(settings) as receiving:
            until(lambda: receiving.seen[0].state == "receiving", "it is not connected")
        reader = threading.Thread(target=read)
        reader.start()
        for n in range(total):
            client.publish("meters/a", f"{n:06}", qos=1)
        for _ in range(KILLS):
            enough = len(content(log)) + 7 * chance.randrange(1, 3_000)
            with receiver(settings, tmp_path) as process:
                until(partial(_has, log, enough), "nothing comes")
                process.kill()
        with Receiver(settings):
            until(lambda: lines(log)[-1:] == [f"{total - 1:06}"], "messages are missing")
        ended.set()
        reader.join()
    found = lines(log)
    assert {len(line) for line in found} == {6}  # none is torn
    counts = Counter(map(int, found))
    assert set(counts) == set(range(total))
    assert list(map(int, dict.fromkeys(found))) == list(range(total))  # in order, what comes again left out
    assert sum(counts.values()) - total <= KILLS * 1_000  # those that were under way
    assert not vanished
