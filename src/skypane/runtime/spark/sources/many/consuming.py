"""In a task: the messages of ranges of a Kafka cluster's partitions, all fetched at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skypane.runtime.spark.sources.many.brokers import At, Cluster, Reasons
from skypane.types import CheckpointError

_AT_ONCE = 500
"""Messages that are taken from the client at a time: more cost no less each, and go further beyond the end of a range."""
_POLL = 0.05
"""Seconds that the client may wait for so many: messages that it has are kept waiting by those that do not come."""
_HELD = 50_000
"""Messages of a partition that are handed over before its range is read to the end."""

_OPTIONS = {
    "group.id": "skypane",  # the client wants one; it is never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    # All that is wanted is there: nothing need be waited for.
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 10,
}


@dataclass(slots=True)
class Reading:
    """Where a partition is read up to, and what was read and not handed over."""

    end: int
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def taken(self) -> tuple[list[int], list[bytes]]:
        taken = self.offsets, self.values
        self.offsets, self.values = [], []
        return taken


class Consuming:
    """This process's consumer of a cluster: kept, since a connection costs more than a small range."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415 - an extra

        self.cluster = cluster
        self.reasons = Reasons()
        self.consumer = Consumer({**cluster.told(self.reasons), **_OPTIONS})

    def messages(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[tuple[At, list[int], list[bytes]]]:
        """Yield offsets and values of partitions' messages in [start, end), in order within a partition.

        Offsets may have gaps (compaction, transactions); messages without a value are left out. CheckpointError if some are
        not there any more; TimeoutError if none come for the cluster's timeout.
        """
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        self.reasons.last = ""
        self.consumer.assign([TopicPartition(*place, start) for place, (start, _) in ranges.items()])
        try:
            yield from self._consumed(ranges)
        finally:
            # A pause outlives what is assigned.
            self.consumer.resume([TopicPartition(*place) for place in ranges])
            self.consumer.unassign()

    def _consumed(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[tuple[At, list[int], list[bytes]]]:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        open_ = {place: Reading(end) for place, (_, end) in ranges.items()}
        missing = sum(end - start for start, end in ranges.values())
        heard = time.monotonic()
        while open_:
            got = self.consumer.consume(max(1, min(missing, _AT_ONCE)), timeout=_POLL)
            done: list[At] = []
            for message in got:
                place = At(message.topic(), message.partition())
                reading = open_.get(place)
                if reading is None:
                    continue  # it was fetched beyond the end of its range
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

    def _heard(self, heard: float, anything: bool, open_: Mapping[At, Reading]) -> float:
        """Return when something was heard last; TimeoutError if that is too long ago."""
        now = time.monotonic()
        if anything:
            return now
        if now - heard > self.cluster.timeout:
            place, reading = next(iter(open_.items()))
            raise TimeoutError(
                f"kafka {self.cluster.servers} sent nothing for {self.cluster.timeout:g} s, and a batch that has begun needs "
                f"{place} up to offset {reading.end:,}{self.reasons}; start the query again when it answers"
            )
        return heard

    @staticmethod
    def _check(error: Any, place: At, wanted: tuple[int, int]) -> None:
        """Raise CheckpointError if a range cannot be read any more."""
        from confluent_kafka import KafkaError  # noqa: PLC0415

        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's name for it
            return
        raise CheckpointError(
            f"input {place}: a batch that has begun needs offsets {wanted[0]:,} to {wanted[1]:,}, and the broker says: "
            f'{error.str()}; if they are gone for good, set on_loss="skip" to read what is there'
        )


_CONSUMING: dict[Cluster, Consuming] = {}


def consuming(cluster: Cluster) -> Consuming:
    """Return this process's consumer of a cluster, made at the first call."""
    if cluster not in _CONSUMING:
        _CONSUMING[cluster] = Consuming(cluster)
    return _CONSUMING[cluster]
