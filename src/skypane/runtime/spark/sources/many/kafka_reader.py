"""Read ranges of a Kafka cluster's partitions in a task, all of them at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from skypane.runtime.spark.sources.many.kafka_client import ClientErrors, Cluster, KafkaPartition
from skypane.types import CheckpointError

_AT_ONCE = 500
"""Messages per call of the client: more would cost the same each, and read further beyond the end of a range."""
_POLL = 0.05
"""Seconds that the client may wait for so many messages: those that it has wait meanwhile."""
_HELD = 50_000
"""Messages of a partition after which they are yielded before its range is complete."""

_OPTIONS = {
    "group.id": "skypane",  # the client requires one; the group is never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    # All requested messages exist: the client need not wait for more.
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 10,
}


@dataclass(slots=True)
class PartitionReader:
    """The end of a partition's range, and the messages that were read and not yielded yet."""

    end: int
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def taken(self) -> tuple[list[int], list[bytes]]:
        taken = self.offsets, self.values
        self.offsets, self.values = [], []
        return taken


class CachedConsumer:
    """This process's consumer of a cluster, kept because a connection costs more than a small range."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415 - an extra

        self.cluster = cluster
        self.reasons = ClientErrors()
        self.consumer = Consumer({**cluster.client_options(self.reasons), **_OPTIONS})

    def messages(
        self, ranges: Mapping[KafkaPartition, tuple[int, int]]
    ) -> Iterator[tuple[KafkaPartition, list[int], list[bytes]]]:
        """Yield offsets and values of partitions' messages in [start, end), in order within a partition.

        Offsets may have gaps (compaction, transactions); messages without a value are left out. Raises CheckpointError
        if messages no longer exist, and TimeoutError if none arrive within the cluster's timeout.
        """
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        self.reasons.last = ""
        self.consumer.assign([TopicPartition(*place, start) for place, (start, _) in ranges.items()])
        try:
            yield from self._consumed(ranges)
        finally:
            # A pause would outlive the assignment.
            self.consumer.resume([TopicPartition(*place) for place in ranges])
            self.consumer.unassign()

    def _consumed(
        self, ranges: Mapping[KafkaPartition, tuple[int, int]]
    ) -> Iterator[tuple[KafkaPartition, list[int], list[bytes]]]:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        open_ = {place: PartitionReader(end) for place, (_, end) in ranges.items()}
        missing = sum(end - start for start, end in ranges.values())
        heard = time.monotonic()
        while open_:
            got = self.consumer.consume(max(1, min(missing, _AT_ONCE)), timeout=_POLL)
            done: list[KafkaPartition] = []
            for message in got:
                place = KafkaPartition(message.topic(), message.partition())
                reading = open_.get(place)
                if reading is None:
                    continue  # fetched beyond the end of its range
                if (error := message.error()) is not None:
                    self._check(error, place, ranges[place])
                offset = message.offset()
                if error is None and offset < reading.end and (value := message.value()) is not None:
                    reading.offsets.append(offset)
                    reading.values.append(value)
                missing -= 1
                if offset >= reading.end - (error is None):
                    done.append(place)
                    del open_[place]
                    yield place, *reading.taken()
                elif len(reading.values) >= _HELD:
                    yield place, *reading.taken()
            if done:
                self.consumer.pause([TopicPartition(*place) for place in done])
            heard = self._heard(heard, bool(got), open_)

    def _heard(self, heard: float, anything: bool, open_: Mapping[KafkaPartition, PartitionReader]) -> float:
        """Return when the last message arrived; raise TimeoutError if that is too long ago."""
        now = time.monotonic()
        if anything:
            return now
        if now - heard > self.cluster.timeout:
            place, reading = next(iter(open_.items()))
            raise TimeoutError(
                f"kafka {self.cluster.servers} sent nothing for {self.cluster.timeout:g} s, but a started batch needs "
                f"{place} up to offset {reading.end:,}{self.reasons}; restart the query when the cluster answers"
            )
        return heard

    @staticmethod
    def _check(error: Any, place: KafkaPartition, wanted: tuple[int, int]) -> None:
        """Raise CheckpointError if a range can no longer be read."""
        from confluent_kafka import KafkaError  # noqa: PLC0415

        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's name for it
            return
        raise CheckpointError(
            f"input {place}: a started batch needs offsets {wanted[0]:,} to {wanted[1]:,}, but the broker reports: "
            f'{error.str()}; if they are lost, set on_loss="skip" to read what is there'
        )


@cache
def cached_consumer(cluster: Cluster) -> CachedConsumer:
    """Return this process's consumer of a cluster, created at the first call."""
    return CachedConsumer(cluster)
