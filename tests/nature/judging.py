"""What a scenario's sinks hold, against what the oracle says of its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.chaos.naive import Row
from tests.nature import oracle
from tests.nature.receiving import NAME
from tests.nature.rows import Steps
from tests.nature.scenarios import topic_of


def wrongs(name: str, folder: Path, steps: Steps, broker: str, *, whole: bool) -> list[str]:
    """Return what is wrong with a stream that has come to its end, or, unless `whole`, with one that goes on."""
    found = _answers(name, folder, steps, broker, whole=whole)
    late = oracle.parquet_rows(sorted((folder / "late").glob("*.parquet")))
    if not whole or name == "aggregates":
        return found
    # Spark's operator has dropped some of those that were sent twice; of the others each is emitted once.
    return found + oracle.not_the_rejected(late, steps.rejected)


def _answers(name: str, folder: Path, steps: Steps, broker: str, *, whole: bool) -> list[str]:
    if name == "continuous":
        updates = [*oracle.parquet_rows(sorted((folder / "out").glob("*.parquet")))]
        front = oracle.parquet_rows([folder / "front" / "front.parquet"]) if whole else ()
        wrong = oracle.not_the_front([*front], updates) if whole else []
        return wrong + oracle.not_the_updates(updates, steps.entering, whole=whole)
    if name == "inputs":
        rows, wrong = _received(folder, steps)
        return wrong + oracle.not_the_windows(
            oracle.in_folder(folder / "out"), oracle.tumbling(rows), oracle.is_ids, whole=whole
        )
    if name == "function":
        windows, wrong = oracle.in_calls(folder / "calls")
    elif name == "kafka":
        windows, wrong = oracle.in_topic(_messages(broker, topic_of(folder, "out")))
    else:
        windows, wrong = oracle.in_folder(folder / "out"), []
    same = oracle.is_sums if name == "aggregates" else oracle.is_skyline
    return wrong + oracle.not_the_windows(windows, oracle.expected_windows(steps.entering), same, whole=whole)


def _received(folder: Path, steps: Steps) -> tuple[list[Row], list[str]]:
    """Return the rows of all inputs: those of the receiver as often as its log has them, which may be twice, but not never."""
    log = Counter(json.loads(line)["id"] for line in _log(folder / "received" / NAME))
    sent = {row["id"]: row for row in steps.entering if row["id"] % 5 == 4}
    lost, strange = sent.keys() - log.keys(), log.keys() - sent.keys()
    wrong = [f"{len(lost)} acknowledged lines are not in the log, such as {min(lost)}"] if lost else []
    wrong += [f"{len(strange)} lines of the log were not sent, such as {min(strange)}"] if strange else []
    others = [row for row in steps.entering if row["id"] % 5 != 4]
    return others + [sent[id_] for id_ in log.elements() if id_ in sent], wrong


def _log(folder: Path) -> Iterator[bytes]:
    """Return the lines of a receiver's log, up to where it is on disk for good."""
    end = int((folder / "end").read_bytes().split()[0])
    whole = b"".join(path.read_bytes() for path in sorted(folder.glob("*.segment")))
    return iter(whole[:end].splitlines())


def _messages(broker: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Return all messages of a topic of one partition, in order."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic, "log_level": 0})
    try:
        partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        consumer.assign([partition])
        at = 0
        while at < end:
            for message in consumer.consume(1_000, 5):
                if message.error() is not None:
                    raise RuntimeError(f"{topic} cannot be read: {message.error()}")
                at = message.offset() + 1
                yield message.key(), message.value()
    finally:
        consumer.close()
