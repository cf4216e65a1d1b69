"""How the rows of a stream come to it: as files, or in turn through files that grow, a topic, and a receiver."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Producer
from tests.chaos.naive import Row
from tests.nature.receiving import NAME, Client, Receiver
from tests.nature.rows import Steps
from tests.nature.scenarios import topic_of
from tests.runtime.streams import write_batches
from tests.servers.kafka import IN_ORDER, Broker
from tests.servers.ports import free_ports

AHEAD: Final = 30
"""Steps that are there before they are read, at most."""


class Files:
    """Each step is a file."""

    receiver: Receiver | None = None

    def __init__(self, folder: Path, steps: Steps) -> None:
        self._folder, self._steps = folder / "in", steps

    def feed(self) -> None:
        write_batches(self._folder, [self._steps.step()], first=self._steps.made - 1)

    def tick(self) -> bool:
        """Do what goes on by itself; return whether a step may be fed."""
        return True

    def close(self) -> None:
        """Nothing is open."""


class Inputs:
    """The rows of a step go in turn to two files that grow, to two partitions, and to a receiver: all before the next step."""

    def __init__(self, folder: Path, steps: Steps, broker: Broker, log: Path) -> None:
        self._folder, self._steps = folder / "in", steps
        self._folder.mkdir(parents=True)
        self._topic = topic_of(folder, "in")
        broker.create(self._topic, 2)
        self._producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 2, "log_level": 0, **IN_ORDER})
        self._under_way = 0
        (port,) = free_ports(1)
        received = folder / "received"
        self.receiver = Receiver(received, port, log)
        self._client = Client(port)
        listing = [f"{self._folder}/*.json", {"kafka": broker.address, "topic": self._topic, "timeout": "4 seconds"},
                   {"segments": f"{received}/{NAME}", "format": "json"}]  # fmt: skip
        (folder / "inputs.json").write_text(json.dumps(listing))

    def feed(self) -> None:
        rows = [(row["id"], line_of(row)) for row in _rows(self._steps)]
        for part in range(2):
            with (self._folder / f"{part}.json").open("ab") as file:
                file.write(b"".join(line for id_, line in rows if id_ % 5 == part))
            for line in (line for id_, line in rows if id_ % 5 == part + 2):
                self._under_way += 1
                self._producer.produce(self._topic, line.strip(), partition=part, on_delivery=self._delivered)
        self._client.send([line for id_, line in rows if id_ % 5 == 4])

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            raise RuntimeError(f"the broker has not taken a row: {error}")
        self._under_way -= 1

    def tick(self) -> bool:
        self._producer.poll(0)
        if not self.receiver.process.is_alive():
            self.receiver.start()
        self._client.go_on()
        return self._under_way == 0 and self._client.is_done

    def close(self) -> None:
        self._client.close()
        self.receiver.kill()


def _rows(steps: Steps) -> list[Row]:
    before = len(steps.entering)
    steps.step()
    return steps.entering[before:]


def line_of(row: Row) -> bytes:
    """Return a row as a line of JSON."""
    time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row["ts"])
    return json.dumps({**row, "ts": time.isoformat()}).encode() + b"\n"
