"""A real Kafka broker for tests and runs: one node without ZooKeeper, from Maven's artefacts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.servers.ports import free_ports

from skypane.runtime.spark.machine.java import find_java

VERSION = "4.1.0"
BROKER = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>skypane</groupId><artifactId>needs</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{needs}</dependencies>
</project>
"""
_NEED = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_NOTHING = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_PROPERTIES = """process.roles={roles}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port}{listeners}{controlling}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:{protocol}
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
log.retention.check.interval.ms=300
log.initial.task.delay.ms=100
log.cleaner.backoff.ms=200
log.segment.delete.delay.ms=100
file.delete.delay.ms=100
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_reader="{password}";
"""
_KEYSTORE = """listener.name.guarded.ssl.keystore.type=PEM
listener.name.guarded.ssl.keystore.location={keystore}
"""
IN_ORDER = {"enable.idempotence": True}
"""Options of a producer: without them a batch that is sent again may come after later ones of its partition."""
PASSWORD = "unheard-of"  # noqa: S105 - for a broker that runs during a test only


class NoArtefactsError(Exception):
    """Why a broker's jars cannot be had here."""


def classpath(*artefacts: str, alone: bool = False) -> str:
    """Return the jars of group:artefact:version, as Maven has them, and of what they need, if not `alone`.

    NoArtefactsError if Maven cannot be run, or has none.
    """
    if shutil.which("mvn") is None:
        raise NoArtefactsError("there is no mvn on the PATH to get Kafka's artefacts with")
    with tempfile.TemporaryDirectory() as folder:
        needs = "".join(_NEED.format(*artefact.split(":"), _NOTHING if alone else "") for artefact in artefacts)
        (Path(folder) / "pom.xml").write_text(_POM.format(needs=needs))
        classpath_file = Path(folder) / "classpath"
        command = ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={classpath_file}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
        if done.returncode != 0:
            raise NoArtefactsError(f"Maven cannot get Kafka's artefacts: {done.stdout[-500:]}")
        return classpath_file.read_text()


def known_classpath(note: Path) -> str:
    """Return a broker's jars, noted in a file from one run to the next: Maven takes some seconds to answer."""
    known = note.read_text() if note.exists() else ""
    if f"kafka_2.13-{VERSION}.jar" not in known or not all(Path(jar).exists() for jar in known.split(os.pathsep)):
        known = classpath(*BROKER)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(known)
    return known


class Broker:
    """A broker that runs, with its data in `folder`; with a keystore (PEM), its guarded port is encrypted.

    beside   the broker whose cluster it joins, as node 2; by default it is node 1 of a cluster of its own
    """

    def __init__(self, jars: str, folder: Path, keystore: Path | None = None, beside: Broker | None = None) -> None:
        self.jars, self.folder = jars, folder
        self.port, own_controller, self.guarded_port = free_ports(3)
        self.controller: int = own_controller if beside is None else beside.controller
        node = 1 if beside is None else 2
        self.address = f"127.0.0.1:{self.port}"
        #: address of the same broker for clients that log in
        self.guarded = f"127.0.0.1:{self.guarded_port}"
        text = _PROPERTIES.format(
            port=self.port, controller=self.controller, folder=folder, listeners=f",GUARDED://{self.guarded}",
            password=PASSWORD, protocol="SASL_SSL" if keystore else "SASL_PLAINTEXT", node=node,
            roles="broker,controller" if beside is None else "broker",
            controlling=f",CONTROLLER://127.0.0.1:{self.controller}" if beside is None else "",
        )  # fmt: skip
        text += _KEYSTORE.format(keystore=keystore) if keystore else ""
        (folder / "server.properties").write_text(text)
        (folder / "data").mkdir()
        # Write what Kafka's own command would, without starting a JVM.
        names = {"version": 1, "cluster.id": "skypane-tests-00000000", "node.id": node,
                 "directory.id": uuid.uuid4().hex[:22]}  # fmt: skip
        (folder / "data" / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in names.items()))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        java = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self.jars]
        with (self.folder / "log").open("ab") as log:
            command = [f"{find_java().home}/bin/java", *java, "kafka.Kafka", str(self.folder / "server.properties")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while True:
            try:
                AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=1)
            except KafkaException:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"the broker does not start: {(self.folder / 'log').read_text()[-2000:]}"
                    ) from None
            else:
                return

    def stop(self) -> None:
        """Stop it at once: it has nothing to keep that it has not written."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def leave(self) -> None:
        """Stop it in an orderly way: the controller knows at once that its partitions have no leader."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let it answer nothing while the block lasts."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    def create(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, nodes: Sequence[int] = ()
    ) -> None:
        """Create a topic; with `nodes`, its partitions are on these, one for each."""
        where: dict[str, Any] = (
            {"replica_assignment": [[node] for node in nodes]} if nodes else {"replication_factor": 1}
        )
        new = NewTopic(topic, num_partitions=len(nodes) or partitions, config=dict(config or {}), **where)
        for future in self.admin.create_topics([new]).values():
            future.result(30)
        limit = time.monotonic() + 30
        while (
            topic not in self.admin.list_topics(timeout=30).topics
        ):  # the controller knows the topic before the broker does
            if time.monotonic() > limit:
                raise TimeoutError(f"the broker does not list topic {topic} after 30 s")

    def delete(self, topic: str) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(30)

    def send(self, topic: str, values: list[bytes | None], partition: int = 0, keys: list[bytes] | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5, "log_level": 2, **IN_ORDER})
        for at, value in enumerate(values):
            producer.produce(topic, value, key=keys[at] if keys else None, partition=partition)
        assert producer.flush(30) == 0

    def committed(self, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
        """Return keys and values of all messages of a partition that a reader of committed ones gets now."""
        options = {"group.id": topic, "enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 2}
        consumer = Consumer({"bootstrap.servers": self.address, "auto.offset.reset": "earliest", **options})
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[tuple[bytes | None, bytes | None]] = []
        try:
            while (message := consumer.poll(30)) is not None:
                error = message.error()
                if error is None:
                    found.append((message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
            raise TimeoutError(f"the broker sends nothing of {topic}[{partition}]")
        finally:
            consumer.close()

    def cut(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the oldest messages, as retention does."""
        for future in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(30)


@contextmanager
def broker(jars: str, keystore: Path | None = None, beside: Broker | None = None) -> Iterator[Broker]:
    """A broker for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="skypane-kafka-") as folder:
        one = Broker(jars, Path(folder), keystore, beside)
        try:
            one.start()
            yield one
        finally:
            one.stop()


if __name__ == "__main__":
    began = time.monotonic()
    found = classpath(*BROKER)
    print(f"artefacts {time.monotonic() - began:.1f} s, {len(found.split(os.pathsep))} jars")
    with broker(found) as running:
        print(f"broker {time.monotonic() - began:.1f} s {running.address}")
