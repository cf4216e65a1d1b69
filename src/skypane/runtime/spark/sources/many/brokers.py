"""A Kafka cluster, as the driver and its tasks ask it; the only place that knows the client.

The driver asks once a batch: which topics there are, and two requests for the ends of all partitions that are wanted. It
asks in a thread of its own, so a cluster that has fallen silent holds up one batch for `timeout`, and no later one.
Tasks assign themselves what they are to read; there is no consumer group, and nothing is committed.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skypane.runtime.environment import held
from skypane.types import ConfigError

OWN = ("bootstrap.servers", "auto.offset.reset", "enable.auto.commit", "enable.partition.eof", "isolation.level")
"""Options of the client that decide what is read: they are the source's own."""

_REMEDY = "set it before the Spark session is started"

_log = logging.getLogger(__name__)


class At(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where brokers are, what the client is told ("$NAME" stands in the environment), and patience in s."""

    servers: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 10.0

    def resolved(self) -> Cluster:
        """Return the cluster with what the environment holds in its place; ConfigError for what it does not hold."""
        return Cluster(
            self.servers,
            tuple((key, held(text, f"option {key}", os.environ, _REMEDY)) for key, text in self.options),
            self.timeout,
        )

    def told(self, reasons: Reasons) -> dict[str, Any]:
        """Return the client's configuration."""
        # The client prints connection errors by itself, again and again: here they are a part of the error that counts.
        quiet = {"log_level": 2, "error_cb": reasons, "reconnect.backoff.max.ms": 1000}
        return {**quiet, **dict(self.options), "bootstrap.servers": self.servers}


class Reasons:
    """What the client said last of its connections."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, error: object) -> None:
        said = getattr(error, "str", None)
        # That all brokers are down says less than what came before it.
        if said and not (self.last and "brokers are down" in said()):
            self.last = said()

    def __str__(self) -> str:
        return f": {self.last}" if self.last else ""


class Answer(NamedTuple):
    """What a cluster said: the topics that it has, and of the partitions that were asked for the first and last offset."""

    topics: frozenset[str]
    ends: Mapping[At, tuple[int, int]]


class Asking:
    """The driver's conversation with a cluster: one question at a time, whose answer may be waited for in vain."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        self.cluster = cluster
        self.reasons = Reasons()
        try:
            self.admin = AdminClient(cluster.told(self.reasons))
        except KafkaException as error:
            raise ConfigError(f"options of kafka {cluster.servers}: {error.args[0].str()}") from None
        #: what was asked and is not answered yet
        self.pending: Future[Answer] | None = None
        #: the last answer
        self.last: Answer | None = None
        self.silent = False

    def ask(self, wanted: Callable[[str], bool]) -> Answer | None:
        """Return what there is now of the topics that are wanted; None if the cluster is silent.

        ConfigError if it has never answered: then its address or how to log in may be wrong.
        """
        if self.pending is None:
            self.pending = Future()
            threading.Thread(
                target=self._answer, args=(self.pending, wanted), daemon=True, name="skypane-kafka"
            ).start()
        try:
            answer = self.pending.result(0 if self.silent else self.cluster.timeout * 1.5)
        except Exception as error:  # noqa: BLE001 - whatever the client says of itself, or that it says nothing yet
            if self.pending.done():
                self.pending = None
            self._silence(_said(error) or "no answer")
            return None
        if self.silent:
            _log.warning("Kafka %s answers again", self.cluster.servers)
        self.pending, self.last, self.silent = None, answer, False
        return answer

    def _silence(self, why: str) -> None:
        self.admin.poll(0)
        if self.last is None:
            raise ConfigError(
                f"kafka {self.cluster.servers} did not answer within {self.cluster.timeout:g} s ({why}{self.reasons}); see "
                "whether the address is right, and what it wants to be told in options"
            )
        if not self.silent:
            _log.warning("Kafka %s is silent (%s%s): its inputs wait", self.cluster.servers, why, self.reasons)
        self.silent = True

    def _answer(self, pending: Future[Answer], wanted: Callable[[str], bool]) -> None:
        try:
            pending.set_result(self._asked(wanted))
        except BaseException as error:  # noqa: BLE001 - it is told where the answer is waited for
            pending.set_exception(error)

    def _asked(self, wanted: Callable[[str], bool]) -> Answer:
        from confluent_kafka import TopicPartition  # noqa: PLC0415
        from confluent_kafka.admin import OffsetSpec  # noqa: PLC0415

        topics = self.admin.list_topics(timeout=self.cluster.timeout).topics
        asked = [TopicPartition(name, number)
                 for name, topic in topics.items() if wanted(name) for number in topic.partitions]  # fmt: skip
        firsts = self._offsets(asked, OffsetSpec.earliest())
        lasts = self._offsets(asked, OffsetSpec.latest())
        ends = {place: (firsts[place], lasts[place]) for place in firsts.keys() & lasts.keys()}
        return Answer(frozenset(topics), dict(sorted(ends.items())))

    def _offsets(self, asked: list[Any], which: Any) -> dict[At, int]:
        """Return an end of each partition, those left out that have no leader now: read what is committed."""
        from confluent_kafka import IsolationLevel, KafkaException  # noqa: PLC0415

        if not asked:
            return {}
        futures = self.admin.list_offsets(
            dict.fromkeys(asked, which),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self.cluster.timeout,
        )
        found: dict[At, int] = {}
        failed: Exception | None = None
        for part, future in futures.items():
            try:
                found[At(part.topic, part.partition)] = future.result(self.cluster.timeout).offset
            except KafkaException as error:
                failed = error
        if failed is not None and not found:
            raise failed
        return found


def _said(error: BaseException) -> str:
    """Return what the client says of an error, without its own wrapping."""
    inner = error.args[0] if error.args else error
    return inner.str() if hasattr(inner, "str") else str(inner)


_ASKING: dict[Cluster, Asking] = {}


def asking(cluster: Cluster) -> Asking:
    """Return this process's conversation with a cluster, begun at the first call."""
    if cluster not in _ASKING:
        _ASKING[cluster] = Asking(cluster)
    return _ASKING[cluster]
