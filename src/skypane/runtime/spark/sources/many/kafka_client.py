"""Access to a Kafka cluster for the driver and its tasks, and the options of every client of it.

The driver sends three requests per micro-batch: one for the topics, and two for the first and last offsets of all
wanted partitions. A separate thread sends them, so a silent cluster delays one batch by `timeout`, and no later batch.
Tasks assign partitions to themselves; there is no consumer group, and nothing is committed to Kafka.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from skypane.runtime.environment import held
from skypane.types import ConfigError

OWN = ("bootstrap.servers", "auto.offset.reset", "enable.auto.commit", "enable.partition.eof", "isolation.level")
"""Options of the client that decide what is read; the source sets them itself."""

_REMEDY = "set it before the Spark session is started"

_log = logging.getLogger(__name__)


def check_client() -> None:
    """Raise ConfigError if Kafka's client is not installed."""
    if find_spec("confluent_kafka") is None:
        raise ConfigError(
            "kafka needs the package confluent-kafka, which is not installed: pip install 'skypane[kafka]'"
        )


def option_texts(options: Mapping[str, object], own: tuple[str, ...], topic: str) -> dict[str, str]:
    """Return options of the client as texts, by name; raise ConfigError if one of them is skypane's `own`."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"topic {topic}: options must be a mapping of the client's options")
    for key in own:
        if key in options:
            raise ConfigError(f"topic {topic}: option {key} is set by skypane; remove it")
    return {key: _text(value) for key, value in sorted(options.items())}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class KafkaPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, options of the client ("$NAME" is an environment variable), and the timeout in seconds."""

    servers: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 10.0

    def resolved(self) -> Cluster:
        """Return the cluster with environment variables replaced; raise ConfigError for variables that are not set."""
        return Cluster(
            self.servers,
            tuple((key, held(text, f"option {key}", os.environ, _REMEDY)) for key, text in self.options),
            self.timeout,
        )

    def client_options(self, reasons: ClientErrors) -> dict[str, Any]:
        """Return the client's configuration."""
        # The client would print connection errors again and again; instead they become part of the final error.
        quiet = {"log_level": 2, "error_cb": reasons, "reconnect.backoff.max.ms": 1000}
        return {**quiet, **dict(self.options), "bootstrap.servers": self.servers}


class ClientErrors:
    """The client's last connection error."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, error: object) -> None:
        text = getattr(error, "str", None)
        # "All brokers are down" is less informative than the error before it.
        if text and not (self.last and "brokers are down" in text()):
            self.last = text()

    def __str__(self) -> str:
        return f": {self.last}" if self.last else ""


class TopicOffsets(NamedTuple):
    """A cluster's answer: its topics, and of each requested partition the first and last offset, or why there are none now."""

    topics: frozenset[str]
    ends: Mapping[KafkaPartition, tuple[int, int]]
    unanswered: Mapping[KafkaPartition, str]


class NoOffsetsError(Exception):
    """A cluster answers, but has no offsets of any partition that is wanted."""


class ClusterClient:
    """The driver's client of a cluster: one request at a time, which may time out."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        self.cluster = cluster
        self.reasons = ClientErrors()
        try:
            self.admin = AdminClient(cluster.client_options(self.reasons))
        except KafkaException as error:
            raise ConfigError(f"options of kafka {cluster.servers}: {error.args[0].str()}") from None
        #: the request that is not answered yet
        self.pending: Future[TopicOffsets] | None = None
        #: the last answer
        self.last: TopicOffsets | None = None
        self.silent = False

    def ask(self, wanted: Callable[[str], bool]) -> TopicOffsets | None:
        """Return the present topics and offsets of the wanted topics; None if the cluster is silent.

        Raises ConfigError if it has never had offsets: then its address or the login may be wrong, or its brokers down.
        """
        if self.pending is None:
            self.pending = Future()
            threading.Thread(
                target=self._answer, args=(self.pending, wanted), daemon=True, name="skypane-kafka"
            ).start()
        try:
            answer = self.pending.result(0 if self.silent else self.cluster.timeout * 1.5)
        except Exception as error:  # noqa: BLE001 - any error of the client, or a timeout
            if self.pending.done():
                self.pending = None
            self._silence(error)
            return None
        if self.silent:
            _log.warning("Kafka %s answers again", self.cluster.servers)
        self._report(answer.unanswered, {} if self.last is None else self.last.unanswered)
        self.pending, self.last, self.silent = None, answer, False
        return answer

    def _report(self, now: Mapping[KafkaPartition, str], before: Mapping[KafkaPartition, str]) -> None:
        """Name the partitions whose offsets are not known since this answer, and those whose offsets are known again."""
        for place in sorted(now.keys() - before.keys()):
            _log.warning("Kafka %s has no offsets of %s (%s): it is paused", self.cluster.servers, place, now[place])
        for place in sorted(before.keys() - now.keys()):
            _log.warning("Kafka %s has offsets of %s again", self.cluster.servers, place)

    def _silence(self, error: BaseException) -> None:
        self.admin.poll(0)
        why = f"{_reason(error) or 'no answer'}{self.reasons}"
        leaderless = isinstance(error, NoOffsetsError)
        if self.last is None:
            raise ConfigError(f"kafka {self.cluster.servers} " + (
                f"answers, but has no offsets of any partition ({why}); check that the brokers that lead the "
                "partitions are up, and that the login may read them" if leaderless else
                f"did not answer within {self.cluster.timeout:g} s ({why}); "
                "check the address, and whether options hold the security settings that it requires"
            ))  # fmt: skip
        if not self.silent:
            state = "has no offsets of any partition" if leaderless else "is silent"
            _log.warning("Kafka %s %s (%s): its inputs are paused", self.cluster.servers, state, why)
        self.silent = True

    def _answer(self, pending: Future[TopicOffsets], wanted: Callable[[str], bool]) -> None:
        try:
            pending.set_result(self._requested(wanted))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            pending.set_exception(error)

    def _requested(self, wanted: Callable[[str], bool]) -> TopicOffsets:
        from confluent_kafka import TopicPartition  # noqa: PLC0415
        from confluent_kafka.admin import OffsetSpec  # noqa: PLC0415

        topics = self.admin.list_topics(timeout=self.cluster.timeout).topics
        wanted_parts = [TopicPartition(name, number)
                        for name, topic in topics.items() if wanted(name) for number in topic.partitions]  # fmt: skip
        unanswered: dict[KafkaPartition, str] = {}
        firsts = self._offsets(wanted_parts, OffsetSpec.earliest(), unanswered)
        lasts = self._offsets(wanted_parts, OffsetSpec.latest(), unanswered)
        ends = {place: (firsts[place], lasts[place]) for place in firsts.keys() & lasts.keys()}
        return TopicOffsets(frozenset(topics), dict(sorted(ends.items())), unanswered)

    def _offsets(
        self, wanted_parts: list[Any], which: Any, unanswered: dict[KafkaPartition, str]
    ) -> dict[KafkaPartition, int]:
        """Return one end of the committed messages of each partition; note why one has none, such as the lack of a leader."""
        from confluent_kafka import IsolationLevel, KafkaException  # noqa: PLC0415

        if not wanted_parts:
            return {}
        futures = self.admin.list_offsets(
            dict.fromkeys(wanted_parts, which),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self.cluster.timeout,
        )
        found: dict[KafkaPartition, int] = {}
        for part, future in futures.items():
            place = KafkaPartition(part.topic, part.partition)
            try:
                found[place] = future.result(self.cluster.timeout).offset
            except KafkaException as error:
                unanswered[place] = _reason(error)
        if not found:
            raise NoOffsetsError("; ".join(f"{place}: {why}" for place, why in sorted(unanswered.items())[:3]))
        return found


def _reason(error: BaseException) -> str:
    """Return the client's text of an error, without its wrapping."""
    inner = error.args[0] if error.args else error
    return inner.str() if hasattr(inner, "str") else str(inner)


@cache
def cluster_client(cluster: Cluster) -> ClusterClient:
    """Return this process's client of a cluster, created at the first call."""
    return ClusterClient(cluster)
