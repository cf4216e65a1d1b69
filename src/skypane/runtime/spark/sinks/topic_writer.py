"""Transactions of Kafka, one for each micro-batch: its messages, and a note of its number.

The note is a committed offset of a consumer group that nobody joins, named as the producer is, for partition 0 of the
topic: the number of the next batch. Kafka commits messages and note together or not at all, so a driver that starts
reads from the note whether the batch that it repeats is in the topic. It also fences the producers of earlier drivers,
and aborts what they have left open.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, Self

from skypane.runtime.spark.sinks.batch_digest import BatchDigest
from skypane.runtime.spark.sinks.repeated_batch import of_other_rows
from skypane.runtime.spark.sources.many.kafka_client import ClientErrors, Cluster
from skypane.types import CheckpointError, ConfigError

OWN: Final = ("bootstrap.servers", "transactional.id", "enable.idempotence", "group.id", "isolation.level")
"""Options of the client that make batches exactly once; the sink sets them itself."""

_FULL_QUEUE: Final = 0.1
"""Seconds to wait for messages to be taken when the client's queue is full."""

_SOON: Final = 0.1
"""Seconds between two requests for a note whose coordinator is not known yet."""

_TRANSACTION: Final = 60_000
"""The client's default of transaction.timeout.ms."""

_log = logging.getLogger(__name__)


def _defaults(cluster: Cluster) -> dict[str, Any]:
    """Return options that differ from the client's defaults, and that users may set.

    Messages of a key go to the partition to which Kafka's Java client sends them. No request lasts longer than `timeout`,
    nor, as the client requires, than a transaction.
    """
    transaction = int(dict(cluster.options).get("transaction.timeout.ms", _TRANSACTION))
    return {
        "partitioner": "murmur2_random",
        "transaction.timeout.ms": transaction,
        "socket.timeout.ms": max(10, min(int(cluster.timeout * 1000), transaction - 100)),
    }


class Message(NamedTuple):
    """A message of a topic."""

    key: bytes | None
    #: None: a tombstone, by which a compacted topic forgets the key
    value: bytes | None

    @property
    def content(self) -> bytes:
        """The part by which messages differ; a key is a part of its value."""
        return (self.key or b"") if self.value is None else self.value


class TopicWriter:
    """The producer of one driver start, with its note of the last batch in the topic."""

    def __init__(self, cluster: Cluster, topic: str, name: str) -> None:
        """Create the clients; `name` is unique to the query, and the same for all of its starts."""
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - an extra

        self.cluster, self.topic, self.name = cluster, topic, name
        self.reasons = ClientErrors()
        #: number of the first batch that is not in the topic
        self.next_batch = 0
        #: digest of the batch before it
        self.last = ""
        own = {**_defaults(cluster), **cluster.client_options(self.reasons), "transactional.id": name}
        try:
            self.producer = Producer(own)
        except KafkaException as error:
            raise ConfigError(f"options of kafka {cluster.servers}: {error.args[0].str()}") from None

    @classmethod
    def started(cls, cluster: Cluster, topic: str, name: str) -> Self:
        """Return a writer that has fenced the earlier ones of that name, and has read the note."""
        writer = cls(cluster, topic, name)
        with writer._answering():
            found = writer.producer.list_topics(timeout=cluster.timeout).topics
        if topic not in found:
            raise ConfigError(
                f"kafka {cluster.servers} has no topic {topic!r}; create it (kafka-topics.sh --create --topic {topic} "
                f"--partitions 1), with one partition if its messages must be read in order"
            )
        with writer._answering():
            writer.producer.init_transactions(cluster.timeout)
            writer._read_note()
        return writer

    def check_next(self, next_batch: int) -> None:
        """Raise CheckpointError if the topic has batches that the checkpoint does not know; `next_batch` may be there."""
        if self.next_batch > next_batch + 1:
            raise CheckpointError(
                f"topic {self.topic} has the batches of this query up to {self.next_batch - 1}, and the next batch of "
                f"the checkpoint is {next_batch}: the checkpoint is older than the output. Restore its newest copy, or "
                f"start with a new checkpoint and a new topic"
            )
        if next_batch and not self.last:
            _log.warning(
                "topic %s has no note of this query's batches (group %s): batch %d is written, though a killed driver "
                "may have written it, if the broker has kept the note for a shorter time (offsets.retention.minutes) "
                "than the query has not run", self.topic, self.name, next_batch,
            )  # fmt: skip

    def write(self, batch_id: int, messages: Iterable[Message]) -> None:
        """Write the messages of a batch, or nothing if the topic has them.

        Raises CheckpointError if it has other messages for this batch or if another driver has taken over, and
        OSError if the brokers do not take them.
        """
        digest = BatchDigest()
        if batch_id < self.next_batch:
            for message in messages:
                digest.add(message.content)
            self._check_repeated(batch_id, str(digest))
            return
        with self._transaction(batch_id):
            for message in messages:
                digest.add(message.content)
                self._send(message)
            self._note(batch_id + 1, str(digest))
        self.next_batch, self.last = batch_id + 1, str(digest)

    @contextmanager
    def _transaction(self, batch_id: int) -> Iterator[None]:
        """Commit what the block sends; abort it if the block fails."""
        with self._answering(f"batch {batch_id}"):
            self.producer.begin_transaction()
            try:
                yield
                self.producer.commit_transaction(self.cluster.timeout)
            except BaseException:
                # Else readers of the topic would wait for its end until transaction.timeout.ms.
                with suppress(Exception):
                    self.producer.abort_transaction(self.cluster.timeout)
                raise

    def _send(self, message: Message) -> None:
        while True:
            try:
                self.producer.produce(self.topic, message.value, key=message.key)
            except BufferError:
                self.producer.poll(_FULL_QUEUE)  # messages that no broker takes leave the queue after their timeout
            else:
                return

    def _note(self, next_batch: int, digest: str) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        note = TopicPartition(self.topic, 0, next_batch, metadata=digest)
        self.producer.send_offsets_to_transaction([note], self._group, self.cluster.timeout)

    def _read_note(self) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415

        own = {"group.id": self.name, "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = Consumer({**self.cluster.client_options(self.reasons), **own})
        try:
            note = self._committed(consumer)
            if note.offset >= 0:
                self.next_batch, self.last = note.offset, note.metadata
            self._group: Any = consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def _committed(self, consumer: Any) -> Any:
        """Return the offset that the group has committed; a broker that has just started has to find its coordinator."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415

        limit = time.monotonic() + self.cluster.timeout
        while True:
            try:
                (note,) = consumer.committed([TopicPartition(self.topic, 0)], timeout=self.cluster.timeout)
            except KafkaException as failed:
                error = failed
            else:
                if note.error is None:
                    return note
                error = KafkaException(note.error)
            if time.monotonic() > limit:
                raise error
            consumer.poll(_SOON)

    def _check_repeated(self, batch_id: int, digest: str) -> None:
        if digest != self.last:
            raise of_other_rows(batch_id, f"topic {self.topic}", digest, self.last)

    @contextmanager
    def _answering(self, what: str = "") -> Iterator[None]:
        """Replace errors of the client by ones that name the cluster and the remedy."""
        from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415

        try:
            yield
        except KafkaException as error:
            why = error.args[0]
            if why.code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}:  # noqa: SLF001 - the client's name for it
                raise CheckpointError(
                    f"topic {self.topic}: another driver of this query has started and taken over, or {what} took "
                    f"longer than the option transaction.timeout.ms: this one stops ({why.str()})"
                ) from None
            if why.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise ConfigError(
                    f"topic {self.topic}: a row of {what} is too large for a message; raise the option "
                    f"message.max.bytes, and the topic's max.message.bytes ({why.str()})"
                ) from None
            self.producer.poll(0)  # the client's reason for silence
            if not what:
                raise ConfigError(
                    f"kafka {self.cluster.servers} did not answer within {self.cluster.timeout:g} s ({why.str()}"
                    f"{self.reasons}); check the address, and whether options hold the security settings that it requires"
                ) from None
            raise OSError(
                f"topic {self.topic} of kafka {self.cluster.servers} did not take {what} ({why.str()}{self.reasons}); "
                f"it has none of its messages, or all, and takes the batch when the query is started again"
            ) from None
