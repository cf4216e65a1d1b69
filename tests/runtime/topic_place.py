"""A topic of a broker, where one test has it: its sink, and what its readers get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from tests.runtime.rows_of_batches import SCHEMA
from tests.servers.kafka import Broker

from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.kafka_topic import Kafka


@dataclass(frozen=True)
class TopicPlace:
    """A topic of a name that no other test has."""

    broker: Broker
    topic: str

    @classmethod
    def made(cls, broker: Broker) -> TopicPlace:
        """Return a new topic."""
        place = cls(broker, f"out-{uuid4().hex[:8]}")
        broker.create(place.topic)
        return place

    def sink(self, **more: Any) -> Kafka:
        given = {"key": ["window_start", "city"], "timeout": "60 seconds", **more}
        return Kafka(self.broker.address, self.topic, **given)

    def started(
        self, next_batch: int = 0, schema: pa.Schema = SCHEMA, timeout: str = "60 seconds", **claim: Any
    ) -> Kafka:
        """Return the sink as one more driver start of a query opens it."""
        sink = self.sink(timeout=timeout)
        sink.check(schema)
        sink.open(QueryStart(**{"query": "q", "next_batch": next_batch, **claim}))
        return sink

    def messages(self) -> list[tuple[Any, dict[str, Any]]]:
        """Return keys and values of the messages that are committed, in their order."""
        return [
            (json.loads(key or "null"), json.loads(value or "")) for key, value in self.broker.committed(self.topic)
        ]

    def rows(self) -> list[int]:
        """Return n of all rows, sorted."""
        return sorted(row["n"] for _, row in self.messages())
