"""Answers as messages of a topic of Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.operators.window_query import ACTION, REMOVED, WINDOW_START
from skypane.runtime.environment import check_named
from skypane.runtime.redaction import is_plain
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.row_changes import are_changes, are_of_windows, in_order
from skypane.runtime.spark.sinks.sink import Sink, check_role, copied
from skypane.runtime.spark.sinks.topic_writer import OWN, Message, TopicWriter
from skypane.runtime.spark.sources.many.kafka_client import Cluster, check_client, option_texts
from skypane.types import CheckpointError, ConfigError, Duration, Length, micros

_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True)
class Kafka(Sink):
    """Writes each micro-batch to a topic, exactly once, in one transaction: a message of JSON for each row.

    Readers must read committed messages only, as `sp.inputs` does (Spark: option kafka.isolation.level, read_committed).

    servers     host:port of a broker; separate several with commas
    topic       the topic, which must exist
    key         columns of a message's key, a JSON object, or their names separated by commas; messages of one key are in
                one partition, in order. Default: no key
    tombstones  with changes ("ADD", "DEL"), whether a removed row is a message without a value, by which a compacted
                topic forgets its key: the last messages of all keys are then the current answers
    options     options of Kafka's C client, such as security.protocol; "$NAME" is an environment variable
    timeout     how long the brokers may be silent

    >>> output = sp.Kafka("broker:9092", "best", key=("window_start", "city"))
    >>> job = sp.stream(
    ...     arriving, sp.Skyline("price MIN", by="city"), time="ts", window="1 hour", checkpoint="state", output=output
    ... )
    """

    servers: str
    topic: str
    _: KW_ONLY
    key: str | Sequence[str] = ()
    tombstones: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    timeout: Duration = "30 seconds"
    _claims: list[QueryStart] = field(default_factory=list, init=False, repr=False, compare=False)
    _opened: list[TopicWriter] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if ":" not in str(self.servers):
            raise ConfigError(f"servers must be host:port of a broker of Kafka, got {self.servers!r}")
        if not _TOPIC.fullmatch(str(self.topic)):
            raise ConfigError(f"kafka {self.servers}: topic must be the name of a topic, got {self.topic!r}")
        columns = self.key.split(",") if isinstance(self.key, str) else self.key
        object.__setattr__(self, "key", tuple(name.strip() for name in columns if name.strip()))
        object.__setattr__(self, "options", option_texts(self.options, OWN, self.topic))
        for name, value in self.options.items():
            if not is_plain(name):
                check_named(value, f"topic {self.topic}: option {name}")
        object.__setattr__(self, "timeout", Length(micros(self.timeout, "timeout")))
        if micros(self.timeout, "timeout") <= 0:
            raise ConfigError(f"topic {self.topic}: timeout must be longer than 0, got {self.timeout!r}")
        if not isinstance(self.tombstones, bool):
            raise ConfigError(f"topic {self.topic}: tombstones must be True or False, got {self.tombstones!r}")
        check_client()

    def check(self, schema: pa.Schema) -> None:
        for name in self.key:
            if name not in schema.names:
                raise ConfigError(
                    f"topic {self.topic}: key column {name!r} is not a column of the rows, which are "
                    f"{', '.join(schema.names)}"
                )

        if not self.tombstones:
            return
        if not (self.key and are_changes(schema)):
            raise ConfigError(
                f"topic {self.topic}: tombstones=True needs a key, and changes of rows: Amend(..., changes=True), or a "
                f"continuous skyline"
            )
        if are_of_windows(schema) and WINDOW_START not in self.key:
            raise ConfigError(
                f"topic {self.topic}: key must have the column {WINDOW_START}, as a row that leaves one window would be "
                f"removed from all; got {', '.join(self.key)}"
            )

    def for_job(self) -> Kafka:
        return copied(self, "_claims", "_opened")

    def open(self, claim: QueryStart) -> None:
        check_role(self._claims, claim, f"topic {self.topic}")
        claim.check()  # a driver that was fenced must not fence the next one's producer
        cluster = Cluster(self.servers, tuple(self.options.items()), micros(self.timeout, "timeout") / 1e6)
        writer = TopicWriter.started(cluster.resolved(), self.topic, f"skypane-{claim.query}-{claim.role}")
        self._claims[:], self._opened[:] = [claim], [writer]
        writer.check_next(claim.next_batch)

    def received(self, batch_id: int) -> bool:
        return any(batch_id < writer.next_batch for writer in self._opened)

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # the driver sends the messages: one transaction has one producer
        if not self._opened:
            raise CheckpointError(f"topic {self.topic}: the sink has not been opened; start the query")
        writer = self._opened[0]
        if answers.row_count or batch_id < writer.next_batch:
            writer.write(batch_id, self._messages(answers))

    def _messages(self, answers: BatchRows) -> Iterator[Message]:
        for part in in_order(answers) if self.tombstones else answers.parts():
            for rows in text_format.json_objects(part):
                for row in rows:
                    key = text_format.json_text({name: row[name] for name in self.key}).encode() if self.key else None
                    gone = self.tombstones and row[ACTION] == REMOVED
                    yield Message(key, None if gone else text_format.json_text(row).encode())
