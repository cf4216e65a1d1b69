"""Hundreds of inputs on two readers: joins, leaves, stalls, five-fold bursts, and driver kills.

    python -m measure.admission.acceptance [--docs docs] [--seconds 120] [--rate 2000] [--kills 2] [--mqtt]

The inputs are 200 Kafka partitions in 50 topics with Zipf rates, 50 growing files, 40 inputs over TCP, and with --mqtt
10 devices over MQTT (needs mosquitto). One in five joins at 30 % of the time, one in ten falls silent for a while, five
files are removed and put back, and all rates rise five-fold for a tenth of the time. The driver is killed with -9 and
restarted at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from confluent_kafka import Producer
from tests.servers.kafka import IN_ORDER, Broker, broker, known_classpath
from tests.servers.ports import free_ports

from measure.admission import load
from measure.admission.verdict import Verdict, verdict
from measure.tables import markdown_table, replace_between
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.receiver_status import RECEIVING
from skypane.runtime.resources import cache_directory

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Scale:
    """How many inputs of each kind there are, how long rows are sent (seconds), how many a second, in all, and a batch.

    kills   of the driver: the last one when all is sent, the others before
    """

    topics: int = 50
    partitions: int = 4
    files: int = 50
    tcp: int = 40
    mqtt: int = 0
    seconds: float = 120.0
    rate: float = 2000.0
    batch: int = 10_000
    kills: int = 2

    @property
    def inputs(self) -> int:
        return self.topics * self.partitions + self.files + self.tcp + self.mqtt


class Driver:
    """The query in a process of its own, killed and started again."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.command = [sys.executable, "-m", "measure.admission.driver", str(folder), str(rows)]
        self.process: subprocess.Popen[str] | None = None
        self.ready = threading.Event()
        self.batch = threading.Event()

    def start(self) -> None:
        process = self.process = subprocess.Popen(  # noqa: S603 - own command
            self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        self.watch = threading.Thread(target=self._watch, args=(process.stdout,), daemon=True)
        self.watch.start()

    def _watch(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                (self.batch if line.startswith("batch ") else self.ready).set()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.watch.join()

    def restart(self) -> None:
        self.kill()
        self.start()

    def finish(self) -> None:
        """Kill it when a batch has been written and Spark does not know yet; read what is left."""
        self.batch.clear()
        self.batch.wait(200)
        self.kill()
        subprocess.run([*self.command, "last"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def run(folder: Path, kafka: Broker, scale: Scale) -> tuple[Verdict, float]:
    """Run it all in an empty folder; return what came of it, and by how many seconds the sender was late."""
    for name in ("in", "out", "received"):
        (folder / name).mkdir()
    (folder / "inputs.json").write_text(load.listing(folder, kafka.address, received=bool(scale.tcp or scale.mqtt)))
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 20, "log_level": 2, **IN_ORDER})
    share = scale.rate / scale.inputs
    feeds = load.topics(producer, scale.topics, scale.partitions, share * scale.topics * scale.partitions)
    joining = {feed.name.partition("[")[0] for feed in feeds if feed.active[0][0] > 0}
    for name in sorted({feed.name.partition("[")[0] for feed in feeds} - joining):
        kafka.create(name, scale.partitions)
    feeds += load.files(folder / "in", scale.files, share * scale.files)
    away = [Path(feed.name) for feed in feeds if feed.away]

    def join() -> None:
        for name in sorted(joining):
            kafka.create(name, scale.partitions)

    def leave() -> None:
        for path in away:
            path.rename(path.with_suffix(".away"))

    def come_back() -> None:
        for path in away:
            path.with_suffix(".away").rename(path)

    driver = Driver(folder, scale.batch)
    kills = [((at + 1) / scale.kills + 0.02, driver.restart) for at in range(scale.kills - 1)]
    with ExitStack() as stack:
        received, receiver = _received(folder, scale, share, stack)
        events = [(0.3, join), (0.4, leave), (0.6, come_back), *kills]
        whole = load.Load(feeds + received, events, lambda: producer.poll(0))
        driver.start()
        try:
            _until(driver.ready.is_set, "the driver does not start")
            whole.run(scale.seconds)
            assert producer.flush(60) == 0
            lines = sum(feed.sent for feed in received)
            _until(lambda: sum(one.lines for one in receiver.seen) >= lines, "lines are not received")
            driver.finish()
        finally:
            driver.kill()
    return verdict(folder / "out", whole.expected, frozenset(map(str, away))), whole.late


def _received(folder: Path, scale: Scale, share: float, stack: ExitStack) -> tuple[list[load.Feed], Receiver]:
    """Return what is sent over TCP and MQTT, and what receives it, started."""
    ports = free_ports(scale.tcp)
    receipts: list[dict[str, Any]] = [
        {"name": f"tcp-{at:02}", "listen": f"127.0.0.1:{port}"} for at, port in enumerate(ports)
    ]
    feeds = load.sockets(folder / "received", ports, share * scale.tcp, stack)
    if scale.mqtt:
        port, client = stack.enter_context(_mosquitto(folder / "mosquitto"))
        address = f"mqtt://127.0.0.1:{port}"
        receipts += [{"name": f"mqtt-{at:02}", "mqtt": address, "topic": f"device/{at}"} for at in range(scale.mqtt)]
        feeds += load.devices(folder / "received", client, scale.mqtt, share * scale.mqtt)
    receiver = stack.enter_context(Receiver({"folder": str(folder / "received"), "inputs": receipts}))
    # The broker keeps a device's messages for a receiver from its first subscription on.
    subscribed = [one for one in receiver.seen if one.name.startswith("mqtt-")]
    _until(lambda: all(one.state == RECEIVING for one in subscribed), "receivers do not start")
    return feeds, receiver


@contextmanager
def _mosquitto(folder: Path) -> Iterator[tuple[int, Any]]:
    import paho.mqtt.client as paho  # noqa: PLC0415 - only with --mqtt
    from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415
    from tests.runtime.receiving.broker import mosquitto  # noqa: PLC0415

    (port,) = free_ports(1)
    with mosquitto(folder, port):
        client = paho.Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", port)
        client.loop_start()
        yield port, client
        client.loop_stop()


def _until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.1)


def table(found: Verdict, kills: int) -> str:
    """Return the figures beside what is asked for."""
    within = float((found.excess <= 0.07).mean())
    waits, hot = np.quantile(found.waits, [0.5, 0.95]), np.quantile(found.hot, [0.5, 0.95])
    lines = [
        ("inputs", "300", f"{found.inputs}"),
        (
            f"rows that are missing, that are twice, over {kills} kills",
            "0, 0",
            f"{found.missing}, {found.twice} of {found.rows:,}",
        ),
        ("tasks of a batch, at most", "2", f"{found.tasks}"),
        ("the busier task beyond an even share, median of batches", "7 %", f"{np.median(found.excess):.1%}"),
        ("batches within 7 %", "", f"{within:.0%} of {len(found.excess)}"),
        ("the busier task beyond the packing bound, 95 % of batches", "15 %", f"{np.quantile(found.beyond, 0.95):.1%}"),
        ("batches in a row in which an input waited and got nothing", "3", f"{found.starved}"),
        ("seconds from sending to the end of the batch, median and 95 %", "", f"{waits[0]:.1f}, {waits[1]:.1f}"),
        ("the same of the hottest input", "", f"{hot[0]:.1f}, {hot[1]:.1f}"),
    ]
    return markdown_table(("", "required", "measured"), lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, and print; with --docs into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rate", type=float, default=2000, help="rows a second, of all inputs together")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--mqtt", action="store_true")
    given = parser.parse_args(arguments)
    scale = Scale(seconds=given.seconds, rate=given.rate, kills=given.kills, mqtt=10 if given.mqtt else 0)
    jars = known_classpath(cache_directory() / "kafka-classpath")
    with tempfile.TemporaryDirectory() as folder, broker(jars) as kafka:
        found, late = run(Path(folder), kafka, scale)
    text = table(found, given.kills)
    print(f"{text}\n\nThe sender was late by {late:.1f} s at most; {found.batches} batches.")
    if given.docs is not None:
        replace_between(given.docs / "admission.md", "acceptance", text)


if __name__ == "__main__":
    main()
