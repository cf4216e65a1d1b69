"""Partitions of Kafka's topics, as inputs: `{"kafka": "host:port", "topic": ...}`. Their offsets are Kafka's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.runtime.environment import is_named
from skypane.runtime.redaction import is_plain
from skypane.runtime.row_parser import FORMATS, Malformed, RowFormat
from skypane.runtime.spark.sources.many import record_rows
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, RowOffsets, described, plain_meta
from skypane.runtime.spark.sources.many.kafka_client import (
    OWN,
    Cluster,
    KafkaPartition,
    TopicOffsets,
    check_client,
    cluster_client,
    option_texts,
)
from skypane.runtime.spark.sources.many.kafka_reader import CachedConsumer, cached_consumer, peeking_consumer
from skypane.runtime.spark.sources.many.message_rows import tables
from skypane.runtime.spark.sources.many.schema_registry import Registry
from skypane.types import ConfigError, Duration, Length, micros

_TOPIC = re.compile(r"[a-zA-Z0-9._\-*?\[\]!]+")
_NAMED = re.compile(r"(.+)\[(\d+)\]")
_GAPS = 4
"""Offsets that are sampled for a row, because offsets may have gaps."""


KEY: Final = "kafka"
"""The key of a mapping that chooses this kind."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic, or a pattern (*, ?, [..]) that matches many; each partition is an input, read from its oldest message.

    kafka    host:port of a broker; separate several with commas
    topic    the name or pattern; the topic may be created later, and a pattern matches no topic that begins with "__"
    name     the part of the inputs' names before [partition]; default: the topic's name
    format   "json" (one object per message), "csv" (one line per message, columns in the order of the schema), or "avro" or
             "protobuf", with a registry
    registry  URL of the schema registry of such messages, or a mapping of options of its client, such as
             {"url": ..., "basic.auth.user.info": "$NAME"}
    options  options of Kafka's C client, such as security.protocol; "$NAME" is an environment variable
    timeout  how long the brokers may be silent
    meta     what is known of a partition's rate beforehand
    """

    kafka: str
    topic: str = ""
    name: str = ""
    format: str = "json"
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    timeout: Duration = "10 seconds"
    meta: MetaData = field(default_factory=MetaData)
    registry: Any = field(default=None, repr=False)

    kind: ClassVar[str] = KEY

    def __post_init__(self) -> None:
        if ":" not in str(self.kafka):
            raise ConfigError(f"kafka must be host:port of a broker, got {self.kafka!r}")
        if not _TOPIC.fullmatch(str(self.topic)):
            raise ConfigError(
                f"kafka {self.kafka} needs topic, the name or pattern of what to read, got {self.topic!r}"
            )
        if self.is_pattern and self.name:
            raise ConfigError(f"a pattern finds many inputs, each named by its topic; leave out name={self.name!r}")
        if self.format not in (*FORMATS, *record_rows.FORMATS):
            raise ConfigError(f"topic {self.topic}: format must be csv, json, avro or protobuf, got {self.format!r}")
        object.__setattr__(self, "options", option_texts(self.options, OWN, self.topic))
        object.__setattr__(self, "timeout", Length(micros(self.timeout, "timeout")))
        if micros(self.timeout, "timeout") <= 0:
            raise ConfigError(f"topic {self.topic}: timeout must be longer than 0, got {self.timeout!r}")
        check_client()
        self._settle_registry()

    def _settle_registry(self) -> None:
        if (self.format in record_rows.FORMATS) != (self.registry is not None):
            raise ConfigError(
                f"topic {self.topic}: messages of avro and protobuf need registry, the URL of their schema registry, and "
                f"others have none; got format={self.format!r}"
            )
        if self.registry is not None and not isinstance(self.registry, Registry):
            seconds = micros(self.timeout, "timeout") / 1e6
            object.__setattr__(self, "registry", Registry.of(self.registry, self.topic, seconds))

    @property
    def is_pattern(self) -> bool:
        return any(sign in self.topic for sign in "*?[")

    @property
    def claims(self) -> frozenset[str]:
        what = f"{self.kafka}/{self.topic}"
        return frozenset({what} if self.is_pattern else {what, self.name or f"{self.topic}[...]"})

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.kafka, tuple(self.options.items()), micros(self.timeout, "timeout") / 1e6)

    def plain(self) -> dict[str, Any]:
        for key, value in self.options.items():
            if not is_plain(key) and not is_named(value):
                raise ConfigError(
                    f"topic {self.topic}: option {key} would be shown in Spark's plan; give the name of an environment "
                    f'variable that holds it, "$NAME", or list the inputs in a file'
                )
        more = {} if self.registry is None else {"registry": self.registry.plain(self.topic)}
        return {"kafka": self.kafka, "topic": self.topic, "name": self.name, "format": self.format,
                "options": dict(self.options), "timeout": f"{micros(self.timeout, 'timeout')} us",
                "meta": plain_meta(self.meta), **more}  # fmt: skip

    def wants(self, topic: str) -> bool:
        if self.is_pattern:
            return fnmatchcase(topic, self.topic) and not topic.startswith("__")
        return topic == self.topic

    def input(self, cluster: Cluster, place: KafkaPartition) -> TopicInput:
        name = str(place._replace(topic=self.name)) if self.name else str(place)
        registry = None if self.registry is None else self.registry.resolved()
        return TopicInput(cluster, place, name, self.format, self.meta, registry)

    def lists(self, name: str) -> bool:
        """Return whether an input of this name belongs to these topics."""
        match = _NAMED.fullmatch(name)
        return match is not None and (match[1] == self.name if self.name else self.wants(match[1]))


@dataclass(frozen=True, slots=True)
class TopicInput(RowOffsets):
    """A partition of a topic. Where offsets have gaps, a range has fewer rows than counted, never more."""

    cluster: Cluster
    place: KafkaPartition
    name: str
    format: str
    meta: MetaData
    registry: Registry | None = None

    kind: ClassVar[str] = KEY
    log: ClassVar[None] = None
    unit: ClassVar[str] = "offset"

    @property
    def identity(self) -> str:
        return f"{self.cluster.servers}/{self.place}"

    @property
    def origin(self) -> Mapping[str, Any]:
        return {"raw_topic": self.place.topic, "raw_partition": self.place.partition}

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        return near, max(near, min(near + _GAPS * rows, last))


def of(given: Mapping[str, Any], where: str) -> TopicSpec:
    """Return the topics that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    return described(TopicSpec, given, where)


def look(listed: Sequence[TopicSpec], at: Mapping[str, int]) -> Iterator[InputExtent]:
    """Yield the existing partitions, and those that were read and whose topics have been deleted."""
    seen: set[str] = set()
    gone: dict[str, InputExtent] = {}
    for cluster in dict.fromkeys(one.cluster for one in listed):
        entries = [one for one in listed if one.cluster == cluster]
        ask = cluster_client(cluster.resolved())
        answer = ask.ask(_any_of(entries))
        for found in _there(entries, ask.cluster, answer or ask.last, at, silent=answer is None):
            seen.add(found.input.name)
            yield found
        if answer is not None:
            gone |= {one.input.name: one for one in _gone(entries, ask.cluster, answer, at)}
    yield from (one for name, one in gone.items() if name not in seen)


def _any_of(entries: Sequence[TopicSpec]) -> Callable[[str], bool]:
    return lambda topic: any(one.wants(topic) for one in entries)


def _there(
    entries: Sequence[TopicSpec], cluster: Cluster, answer: TopicOffsets | None, at: Mapping[str, int], *, silent: bool
) -> Iterator[InputExtent]:
    """Yield the partitions in a cluster's answer; those of a silent cluster, or without offsets now, have no backlog."""
    if answer is None:
        return
    for entry in entries:
        for place, (first, last) in answer.ends.items():
            if not entry.wants(place.topic):
                continue
            one = entry.input(cluster, place)
            read = at.get(one.name)
            if silent:
                yield InputExtent(one, first, first if read is None else read)
            else:
                yield InputExtent(one, first, last, "" if read is None else _loss(one, first, last, read))
        for place in answer.unanswered:
            if entry.wants(place.topic) and (one := entry.input(cluster, place)).name in at:
                yield InputExtent(one, at[one.name], at[one.name])


def _loss(one: TopicInput, first: int, last: int, read: int) -> str:
    if last < read:
        return (
            f"{one.identity} ends at offset {last:,}, but was read up to {read:,}: its topic was deleted and created "
            "again, or lost messages; give the entry another name"
        )
    if first > read:
        return (
            f"{one.identity} begins at offset {first:,}, but was read up to {read:,}: messages between were deleted; "
            "give the entry another name"
        )
    return ""


def _gone(
    entries: Sequence[TopicSpec], cluster: Cluster, answer: TopicOffsets, at: Mapping[str, int]
) -> Iterator[InputExtent]:
    for name, read in at.items():
        for entry in entries:
            match = _NAMED.fullmatch(name)
            if read and match is not None and entry.lists(name):
                place = KafkaPartition(entry.topic if entry.name else match[1], int(match[2]))
                if place.topic not in answer.topics:
                    lost = f"topic {place.topic} of {cluster.servers} was deleted after {read:,} offsets were read"
                    yield InputExtent(entry.input(cluster, place), 0, 0, f"{lost}; remove it from the list")


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of partitions; all partitions of a cluster are fetched together."""
    return _rows(parts, columns, cached_consumer)


def peek(
    parts: Sequence[OffsetRange], columns: pa.Schema, _time: str
) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of small ranges, by a consumer that fetches little beyond them."""
    return _rows(parts, columns, peeking_consumer)


def _rows(
    parts: Sequence[OffsetRange], columns: pa.Schema, consumer: Callable[[Cluster], CachedConsumer]
) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    own = {(part.input.cluster, part.input.place): part for part in parts if isinstance(part.input, TopicInput)}
    for cluster in dict.fromkeys(cluster for cluster, _ in own):
        ranges = {place: (part.start, part.end) for (of, place), part in own.items() if of == cluster}
        for place, offsets, values in consumer(cluster).messages(ranges):
            part = own[cluster, place]
            assert isinstance(part.input, TopicInput)  # noqa: S101 - as chosen above
            for found in _tables(part.input, columns, values, offsets):
                yield part, found


def _tables(
    one: TopicInput, columns: pa.Schema, values: Sequence[bytes], offsets: Sequence[int]
) -> Iterator[pa.Table | Malformed]:
    """Yield the rows of a partition's messages."""
    if one.registry is not None:
        return record_rows.tables(one.format, columns, one.registry, values, offsets)
    return tables(RowFormat(one.format, columns, tuple(columns.names)), values, offsets)
