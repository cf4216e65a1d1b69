"""The load of the acceptance run of many inputs: topics with Zipf rates, growing files, lines over TCP, MQTT.

Every row is {"n": its number in its input, "at": the time of sending in seconds}, so that the rows read show which are
missing, which are duplicated, and how long they took.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TICK = 0.1
"""Seconds between two sendings."""
BURST = 5.0
"""By how much all rates rise in the burst."""


@dataclass
class Feed:
    """One input: its name in the query, rows a second, how rows are sent, and the parts of the run in which it sends.

    active   (from, to) in shares of the run; away: a file that is not there for a while
    """

    name: str
    rate: float
    send: Callable[[list[bytes]], None]
    active: Sequence[tuple[float, float]] = ((0.0, 1.0),)
    away: bool = False
    credit: float = 0.0
    sent: int = 0

    def tick(self, share: float, factor: float) -> None:
        if not any(begin <= share < end for begin, end in self.active):
            return
        self.credit += self.rate * factor * TICK
        rows, self.credit = int(self.credit), self.credit % 1
        if rows:
            now = time.time()
            self.send([b'{"n": %d, "at": %.3f}' % (self.sent + at, now) for at in range(rows)])
            self.sent += rows


def burst(share: float) -> float:
    """Return by how much all rates are higher at a share of the run: five-fold for a tenth of it."""
    return BURST if 0.5 <= share < 0.6 else 1.0


@dataclass
class Load:
    """All inputs; `events` happen once, at their shares of the run; `factor` is what rates are multiplied by there."""

    feeds: list[Feed]
    events: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    flush: Callable[[], None] = lambda: None
    factor: Callable[[float], float] = burst
    #: maximum seconds by which the sender was behind its own clock, which lowers the actual rates
    late: float = 0.0

    def run(self, seconds: float) -> None:
        """Send for so long."""
        waiting = sorted(self.events, key=lambda event: event[0])
        began = time.monotonic()
        for tick in range(round(seconds / TICK)):
            share = tick * TICK / seconds
            while waiting and waiting[0][0] <= share:
                waiting.pop(0)[1]()
            factor = self.factor(share)
            for feed in self.feeds:
                feed.tick(share, factor)
            self.flush()
            self.late = max(self.late, time.monotonic() - began - (tick + 1) * TICK)
            time.sleep(max(0.0, began + (tick + 1) * TICK - time.monotonic()))

    @property
    def expected(self) -> dict[str, int]:
        return {feed.name: feed.sent for feed in self.feeds if feed.sent}


def zipf(count: int, total: float) -> list[float]:
    """Return rates that fall as 1 / rank, `total` in all."""
    weights = 1 / np.arange(1, count + 1)
    return [float(rate) for rate in total * weights / weights.sum()]


def joins(at: int) -> Sequence[tuple[float, float]]:
    """Return when the `at`-th input of a kind sends: one of five joins later, one of ten falls silent for a while."""
    if at % 5 == 4:
        return ((0.3, 1.0),)
    if at % 10 == 3:
        return ((0.0, 0.4), (0.65, 1.0))
    return ((0.0, 1.0),)


def topics(producer: Any, count: int, partitions: int, total: float) -> list[Feed]:
    """Return the partitions of `count` topics, whose rates are mixed over the topics."""

    def sender(topic: str, partition: int) -> Callable[[list[bytes]], None]:
        def send(rows: list[bytes]) -> None:
            for row in rows:
                producer.produce(topic, row, partition=partition)
            producer.poll(0)

        return send

    feeds = []
    for at, rate in enumerate(zipf(count * partitions, total)):
        topic, partition = f"topic-{at % count:02}", at // count
        feeds.append(Feed(f"{topic}[{partition}]", rate, sender(topic, partition), joins(at % count)))
    return feeds


def files(folder: Path, count: int, total: float) -> list[Feed]:
    """Return files that grow in `folder`; each tenth is to be taken away for a while."""

    def sender(path: Path) -> Callable[[list[bytes]], None]:
        def send(rows: list[bytes]) -> None:
            with path.open("ab") as file:
                file.write(b"".join(row + b"\n" for row in rows))

        return send

    feeds = []
    for at in range(count):
        path = folder / f"file-{at:02}.jsonl"
        away = at % 10 == 7
        feeds.append(
            Feed(str(path), total / count, sender(path), ((0.0, 0.4), (0.6, 1.0)) if away else joins(at), away)
        )
    return feeds


def sockets(folder: Path, ports: Sequence[int], total: float, stack: ExitStack) -> list[Feed]:
    """Return lines over TCP to receivers that listen at `ports`, and write in `folder`; `stack` ends the connections."""

    def sender(port: int) -> Callable[[list[bytes]], None]:
        held: list[socket.socket] = []

        def send(rows: list[bytes]) -> None:
            if not held:
                held.append(stack.enter_context(_connected(port)))
            held[0].sendall(b"".join(row + b"\n" for row in rows))

        return send

    return [Feed(f"{folder}/tcp-{at:02}", total / len(ports), sender(port), joins(at)) for at, port in enumerate(ports)]


def _connected(port: int) -> socket.socket:
    """Return a connection to a receiver, which may still be starting."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def devices(folder: Path, client: Any, count: int, total: float) -> list[Feed]:
    """Return messages of MQTT, one topic a device, which a receiver writes in `folder`."""

    def sender(topic: str) -> Callable[[list[bytes]], None]:
        def send(rows: list[bytes]) -> None:
            for row in rows:
                client.publish(topic, row, qos=1)

        return send

    return [Feed(f"{folder}/mqtt-{at:02}", total / count, sender(f"device/{at}"), joins(at)) for at in range(count)]


def listing(folder: Path, kafka: str, *, received: bool) -> str:
    """Return the list of inputs that finds them all."""
    entries: list[dict[str, Any]] = [{"kafka": kafka, "topic": "topic-*"}, {"path": f"{folder}/in/*.jsonl"}]
    if received:
        entries.append({"segments": f"{folder}/received/*", "format": "json"})
    return json.dumps(entries)
