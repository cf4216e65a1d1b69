"""What a scenario's sinks hold, against what the oracle says of its rows."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.chaos.checking import partials_of
from tests.chaos.naive import Row
from tests.nature import oracle
from tests.nature.receiving import NAME
from tests.nature.rows import Steps
from tests.nature.scenarios import NARROW, SCENARIOS, SHARE, topic_of

from skypane.operators.stay_columns import expanded
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger


def wrongs(name: str, folder: Path, steps: Steps, batches: oracle.Batches, broker: str, *, whole: bool) -> list[str]:
    """Return what is wrong with a stream that has come to its end, or, unless `whole`, with one that goes on."""
    if SCENARIOS[name].cut:
        return _versions(name, folder, steps, batches) if whole else []
    found = _answers(name, folder, steps, broker, whole=whole)
    if not whole:
        return found
    if SCENARIOS[name].restored:
        found += left_over(folder)
    if name == "deadly" and not (folder / "killed").exists():
        found.append("no worker was killed")
    # Spark's operator has dropped some of those that were sent twice; of the others each is emitted once.
    return found if name == "aggregates" else found + oracle.not_the_rejected(_late(folder), steps.rejected)


def _late(folder: Path) -> Iterator[Row]:
    return oracle.parquet_rows(sorted((folder / "late").glob("*.parquet")))


def _versions(name: str, folder: Path, steps: Steps, batches: oracle.Batches) -> list[str]:
    written = list(oracle.parquet_rows(sorted((folder / "out").glob("*.parquet"))))
    compare = oracle.not_the_changes if name == "early" else oracle.not_the_versions
    wrong = (
        [] if sum(len(rows) for rows, _ in batches) == len(steps.sent) else ["the ledger does not have each row once"]
    )
    wrong += compare(written, batches) + oracle.not_the_rejected(_late(folder), oracle.rejected_of(batches))
    return wrong + left_over(folder) + (_not_the_account(folder, written) if name == "share" else [])


def _not_the_account(folder: Path, written: Iterable[Row]) -> list[str]:
    """Hold the account of amended windows against the versions that were written: a batch that comes again counts once."""
    amended = {row["window_start"] for row in written if row["version"]}
    manifest = _ledger(folder).latest()
    assert manifest is not None
    found = manifest.operator["closed"]["amended_once"]
    wrong = [] if found == len(amended) > 0 else [f"{found} windows count as amended, not {len(amended)}"]
    return wrong if SHARE.restore(manifest.progress).of_windows else [*wrong, "the policy has not seen windows"]


def left_over(folder: Path) -> list[str]:
    """Return what lies there that no batch needs, or is not there and is needed."""
    manifest = _ledger(folder).latest()
    assert manifest is not None
    kept, named = folder / "checkpoint" / "skypane", partials_of(manifest)
    there = {path.name for path in (kept / "partials").iterdir()}
    passing = [kept / "rejected", kept / "answers", kept / "owner", *folder.glob("*/_staging")]
    left = [str(path.relative_to(folder)) for some in passing for path in some.rglob("*") if path.is_file()]
    wrong = [f"{len(left)} files are left over, such as {left[0]}"] if left else []
    wrong += [] if len(list((kept / "owner").iterdir())) == 1 else ["there is more than one owner"]
    return (
        wrong
        if there == named
        else [*wrong, f"partials are {sorted(there)}, those of the newest manifest {sorted(named)}"]
    )


def _ledger(folder: Path) -> Ledger:
    return Ledger(DocumentStore.at(str(folder / "checkpoint" / "skypane")))


def _answers(name: str, folder: Path, steps: Steps, broker: str, *, whole: bool) -> list[str]:
    out = folder / "out"
    if name == "continuous":
        files = sorted(out.glob("*.parquet"))
        updates = [*oracle.parquet_rows(files)]
        return _not_the_front(folder, files, updates, whole=whole) + oracle.not_the_updates(
            updates, steps.entering, whole=whole
        )
    if name == "inputs":
        rows, wrong = _received(folder, steps)
        return wrong + oracle.not_the_windows(oracle.in_folder(out), oracle.tumbling(rows), oracle.is_ids, whole=whole)
    if name == "stays":
        return _not_the_stays(folder, steps, whole=whole)
    if name == "function":
        windows, wrong = oracle.in_calls(folder / "calls")
    elif name == "kafka":
        windows, wrong = oracle.in_topic(_messages(broker, topic_of(folder, "out")))
    else:
        windows, wrong = oracle.in_folder(out), []
    same = {"aggregates": oracle.is_sums, "deadly": oracle.is_counts}.get(name, oracle.is_skyline)
    return wrong + oracle.not_the_windows(windows, oracle.expected_windows(steps.entering), same, whole=whole)


def _not_the_front(folder: Path, files: list[Path], updates: list[Row], *, whole: bool) -> list[str]:
    """The front is one complete file, at most a batch ahead of the ledger; at the end it is what all updates lead to."""
    path = folder / "front" / "front.parquet"
    if not whole and not path.exists():
        return []
    front = [*oracle.parquet_rows([path])]
    wrong = oracle.not_the_front(front, updates)
    if wrong and not whole:
        last = max((batch["batch_id"] for batch in _ledger(folder).history(1)), default=-1)
        committed = oracle.parquet_rows(path for path in files if int(path.name.split("-")[1]) <= last)
        return wrong if oracle.not_the_front(front, committed) else []
    return wrong


def _not_the_stays(folder: Path, steps: Steps, *, whole: bool) -> list[str]:
    """Rows are written once for several windows; each window is there, whole."""
    tables = [pq.read_table(path) for path in sorted((folder / "out").glob("*.parquet"))]
    if not tables or not whole:
        return []
    written = pa.concat_tables(tables)
    answers = expanded(written)
    starts = answers["window_start"].cast(pa.int64()).to_pylist()
    found: dict[int, list[Row]] = defaultdict(list)
    for start, id_ in zip(starts, answers["id"].to_pylist(), strict=True):
        found[start].append({"id": id_})
    wrong = [] if 2 * len(written) < len(answers) else ["stays do not stand for several windows"]
    expected = oracle.expected_windows(steps.entering, NARROW)
    return wrong + oracle.not_the_windows(sorted(found.items()), expected, oracle.is_skyline, whole=True)


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
