"""Spark's own files of a checkpoint: check them before Spark reads them, and read what they record of a batch.

    <checkpoint>/metadata                id of the query
    <checkpoint>/offsets/<batch>         a version; when the batch began; the offset of each source after it
    <checkpoint>/commits/<batch>         marks the batch as committed
    <checkpoint>/sources/<n>/<offset>    file source: the files added by the offset, with their modification times;
                                         <offset>.compact: all up to it

Hadoop writes a checksum beside each file, but Spark ignores it: with a flipped bit in the name of an ingested file,
Spark reads the file again and its rows are counted twice. For a torn file Spark reports where its parser stopped, but
not which file it is. Only checkpoints on a local disk are checked: other stores keep checksums of their own, and are
slow to list.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from skypane.metrics import PROMISED, SEEN, WAITING
from skypane.runtime.spark.document_store import DocumentStore
from skypane.types import CheckpointError, Micros

_MAGIC = b"crc\0"
"""First bytes of Hadoop's checksum files; then follow the bytes per checksum, and the checksums, four bytes each."""
_DRAFT = re.compile(r"\.+\d+\..+\.tmp(\.crc)?")
"""A file that Spark would have renamed to a number, and its checksum; a driver that dies, or a write that is cut, leaves it."""
_END = 1 << 16
"""Bytes at the end of a file source's log in which the last files of a batch are looked for."""


class Arrival(NamedTuple):
    """When Spark began a batch, by the driver's clock; when its last row came, at the latest then; the bound on latency.

    promised   the bound that a source is to keep, in seconds; None: none has one
    """

    began: Micros
    last_row: Micros
    promised: float | None = None


def check(checkpoint: DocumentStore) -> None:
    """Raise CheckpointError if a file of Spark is damaged, or missing although other files refer to it."""
    if not checkpoint.is_local:
        return
    root = Path(checkpoint.path(""))
    for path in (*_newest(root / "offsets"), *_newest(root / "commits"), *_since_compact(root / "sources")):
        _check_file(path)
    if (root / "metadata").exists():
        _check_file(root / "metadata")
    elif _numbers(root / "offsets"):
        raise _lost(root / "metadata", "is gone")
    _check_batches(root)
    _check_sources(root)


def unfinished(checkpoint: DocumentStore) -> Iterator[tuple[DocumentStore, list[str]]]:
    """Yield the logs of batches with unfinished writes, and their files: Spark refuses to begin its first batch beside one."""
    for log in map(checkpoint.child, ("offsets", "commits")):
        if drafts := [name for name in log.names() if _DRAFT.fullmatch(name)]:
            yield log, drafts


def began(checkpoint: DocumentStore, batch: int) -> Micros:
    """Return when Spark began a batch, by the driver's clock; a replay of the batch has the same time."""
    try:
        return Micros(_recorded(checkpoint, batch)[1]["batchTimestampMs"]) * 1_000
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _lost(Path(checkpoint.path(f"offsets/{batch}")), f"cannot be read ({error!r})") from error


def arrival(checkpoint: DocumentStore, batch: int) -> Arrival | None:
    """Return when a batch began, and when its last row came as far as its sources record it; a replay has the same times.

    sp.inputs records when it saw the row, a file source when its files were written. A row of another source was
    there when Spark began the batch: more is not known. None if Spark's record of the batch cannot be read.
    """
    try:
        start, offsets = began(checkpoint, batch), _offsets(checkpoint, batch)
    except CheckpointError:
        return None
    times = [_last_row(checkpoint, batch, source, offset) for source, offset in enumerate(offsets) if offset != "-"]
    known = [time for time in times if time is not None]
    last_row = min(start, max(known)) if known and len(known) == len(times) else start
    bounds = [offset[PROMISED] for offset in offsets if isinstance(offset, dict) and PROMISED in offset]
    return Arrival(start, last_row, min(bounds, default=None))


def _last_row(checkpoint: DocumentStore, batch: int, source: int, offset: Any) -> Micros | None:
    """Return when the last row up to a source's offset came; None if the source does not record it."""
    if not isinstance(offset, dict):
        return None
    if offset.keys() != {"logOffset"}:
        seen = offset.get(SEEN)
        return Micros(seen) if isinstance(seen, int) else None
    try:
        number = offset["logOffset"]
        written = [time * 1_000 for time, _ in _added(checkpoint.child(f"sources/{source}"), number, number)]
        # A file that came after the batch before, and is older, was moved or copied with its time; or it had to wait.
        return max(written) if min(written) > began(checkpoint, batch - 1) else None
    except (OSError, ValueError, KeyError, TypeError, CheckpointError):
        return None


def in_turn(checkpoint: DocumentStore, batch: int) -> bool:
    """Return whether tasks read what a batch has of several files or inputs, one after the other."""
    return any(
        isinstance(offset, dict) and (offset.keys() == {"logOffset"} or {"at", "turn", "lost"} <= offset.keys())
        for offset in _offsets(checkpoint, batch)
    )


def files_of(checkpoint: DocumentStore, batch: int) -> list[tuple[int, str]]:
    """Return time (milliseconds) and path of the files that a batch reads from Spark's file sources, in this order."""
    before = _offsets(checkpoint, batch - 1) if batch else []
    found: list[tuple[int, str]] = []
    for source, offset in enumerate(_offsets(checkpoint, batch)):
        if isinstance(offset, dict) and offset.keys() == {"logOffset"}:
            earlier = before[source] if source < len(before) else None
            first = earlier["logOffset"] + 1 if isinstance(earlier, dict) else 0
            found += _added(checkpoint.child(f"sources/{source}"), first, offset["logOffset"])
    return sorted(found)


def _offsets(checkpoint: DocumentStore, batch: int) -> list[Any]:
    """Return the offset of each source after a batch that has begun."""
    return _recorded(checkpoint, batch)[2:]


def _added(log: DocumentStore, first: int, last: int) -> list[tuple[int, str]]:
    """Return time (milliseconds) and path of the files that a file source has added; a longer log is read at its end."""
    found = []
    for number in range(first, last + 1):
        name = str(number) if log.has(str(number)) else f"{number}.compact"
        with log.open_input(name) as stream:
            stream.seek(max(0, stream.size() - _END))
            lines = stream.read().decode(errors="replace").splitlines()
        files = [json.loads(line) for line in lines if line.startswith("{")]
        found += [(int(file["timestamp"]), str(file["path"])) for file in files if file["batchId"] == number]
    return found


def last_begun(checkpoint: DocumentStore) -> int:
    """Return the last batch that Spark has begun; -1 if there is none."""
    return max((int(name) for name in checkpoint.child("offsets").names() if name.isdecimal()), default=-1)


def has_begun_after(checkpoint: DocumentStore, batch: int) -> bool:
    """Return whether Spark has begun a batch with new rows after `batch`, the last one that is committed.

    Spark begins one for its stateful operators, too, when there are no new rows: the sources' offsets are then the same.
    """
    last = last_begun(checkpoint)
    if last <= batch:
        return False
    return last == 0 or _recorded(checkpoint, last)[2:] != _recorded(checkpoint, last - 1)[2:]


def waiting_since(checkpoint: DocumentStore, batch: int, time: str) -> Micros | None:
    """Return the least event time, in the column `time`, since which rows wait at the batch's sources; None: unknown.

    A source records it in its offset, so a replay of the batch has the same time.
    """
    offsets = _offsets(checkpoint, batch)
    waiting = [offset[WAITING] for offset in offsets if isinstance(offset, dict) and WAITING in offset]
    times = [since.get(time) for since in waiting if isinstance(since, dict)]
    return min((since for since in times if isinstance(since, int)), default=None)


def _recorded(checkpoint: DocumentStore, batch: int) -> list[Any]:
    """Return Spark's record of a batch that has begun: a version, what sources share, and the offset of each source."""
    name = f"offsets/{batch}"
    try:
        with checkpoint.open_input(name) as stream:
            return _documents(stream.read())
    except (OSError, ValueError) as error:
        raise _lost(Path(checkpoint.path(name)), f"cannot be read ({error!r})") from error


def _check_file(path: Path) -> None:
    content, sums = _read(path), _read(path.with_name(f".{path.name}.crc"))
    if content is None:
        return  # deleted by the driver that is about to be fenced
    if not content:
        raise _lost(path, "is empty")
    if sums and sums.startswith(_MAGIC) and sums[8:] != _sums(content, int.from_bytes(sums[4:8])):
        raise _lost(path, "is damaged: its checksum does not match")
    try:
        _documents(content)
    except ValueError as error:
        raise _lost(path, f"is damaged ({error})") from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _sums(content: bytes, size: int) -> bytes:
    """Return the checksums of the blocks of `size` bytes."""
    starts = range(0, len(content), max(size, 1))
    return b"".join(zlib.crc32(content[start : start + size]).to_bytes(4) for start in starts)


def _documents(content: bytes) -> list[Any]:
    """Return the documents of a file, one per line; other lines, such as a version or a number, as text."""
    return [json.loads(line) if line.startswith("{") else line for line in content.decode().splitlines()]


def _check_batches(root: Path) -> None:
    """Raise CheckpointError if a committed batch has no offsets."""
    done, begun = _numbers(root / "commits"), _numbers(root / "offsets")  # in this order: another driver may still run
    if done and max(done) > max(begun, default=-1):
        raise _lost(root / "offsets" / str(max(done)), "is gone")


def _check_sources(root: Path) -> None:
    """Raise CheckpointError if a file source's log lacks a file between the last compact file and the newest batch."""
    begun = _numbers(root / "offsets")
    if not begun:
        return
    # The offsets follow two lines: a version, and what all sources share.
    source_offsets = _documents((root / "offsets" / str(max(begun))).read_bytes())[2:]
    for source, source_offset in enumerate(source_offsets):
        if not (isinstance(source_offset, dict) and source_offset.keys() == {"logOffset"}):
            continue  # not a file source
        folder = root / "sources" / str(source)
        if source_offset in source_offsets[:source] and not folder.exists():
            continue  # a stream joined with itself: Spark lists its one source twice
        for offset in range(source_offset["logOffset"], -1, -1):
            if (folder / f"{offset}.compact").exists():
                break
            if not (folder / str(offset)).exists():
                raise _lost(folder / str(offset), "is gone")


def _newest(log: Path) -> list[Path]:
    """Return the two files of a log that Spark reads at a start."""
    return [log / str(number) for number in sorted(_numbers(log))[-2:]]


def _since_compact(sources: Path) -> Iterator[Path]:
    """Yield the logs of what sources have read: for each source the last compact file, and the files after it."""
    for source in sources.glob("*"):
        compact = max(_numbers(source, ".compact"), default=-1)
        if compact >= 0:
            yield source / f"{compact}.compact"
        yield from (source / str(number) for number in _numbers(source) if number > compact)


def _numbers(log: Path, suffix: str = "") -> list[int]:
    """Return the numbers of a log's files, without the checksum files of Hadoop and the files of unfinished writes."""
    names = [path.name.removesuffix(suffix) for path in log.glob(f"*{suffix}")]
    return [int(name) for name in names if name.isdecimal()]


def _lost(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{path}, a file of Spark's in the checkpoint, {what}: restore the whole checkpoint from a copy, or start with "
        f"a new one"
    )
