"""Spark's own files of a checkpoint, looked through before Spark reads them.

    <checkpoint>/metadata                the query's id
    <checkpoint>/offsets/<batch>         where each source stands after the batch
    <checkpoint>/commits/<batch>         that the batch is done
    <checkpoint>/sources/<n>/<offset>    of a source of files: what came with the offset; <offset>.compact: all up to it

Hadoop leaves a checksum beside each, and Spark reads them without a look at it: a flipped bit in the name of a file that
was read has it read again, and its rows come twice. Of torn files Spark says where its parser stopped, not which they are.
Looked through on a local disk only: other stores keep sums of their own, and are slow to list.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

_MAGIC = b"crc\0"
"""How Hadoop's files of checksums begin; bytes per sum follow, then the sums, four bytes each as well."""


def check(checkpoint: Store) -> None:
    """Raise CheckpointError if a file of Spark's is damaged, or one is gone that others speak of."""
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


def _check_file(path: Path) -> None:
    content, sums = _read(path), _read(path.with_name(f".{path.name}.crc"))
    if content is None:
        return  # another driver, which is about to be taken over, has deleted it
    if not content:
        raise _lost(path, "is empty")
    if sums and sums.startswith(_MAGIC) and sums[8:] != _sums(content, int.from_bytes(sums[4:8])):
        raise _lost(path, "is damaged: its checksum is another")
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
    """Return the checksums of each `size` bytes."""
    starts = range(0, len(content), max(size, 1))
    return b"".join(zlib.crc32(content[start : start + size]).to_bytes(4) for start in starts)


def _documents(content: bytes) -> list[Any]:
    """Return the documents of a file, a line each; what is none, a version or a number, comes as text."""
    return [json.loads(line) if line.startswith("{") else line for line in content.decode().splitlines()]


def _check_batches(root: Path) -> None:
    """A batch that is done was begun before."""
    done, begun = _numbers(root / "commits"), _numbers(root / "offsets")  # in this order: another driver may run yet
    if done and max(done) > max(begun, default=-1):
        raise _lost(root / "offsets" / str(max(done)), "is gone")


def _check_sources(root: Path) -> None:
    """What a source of files says of the newest batch is there, back to where all is told in one file."""
    begun = _numbers(root / "offsets")
    if not begun:
        return
    stands = _documents((root / "offsets" / str(max(begun))).read_bytes())[2:]  # after a version, and what is of all
    for source, stand in enumerate(stands):
        if not (isinstance(stand, dict) and stand.keys() == {"logOffset"}):
            continue  # a source of another kind
        folder = root / "sources" / str(source)
        for offset in range(stand["logOffset"], -1, -1):
            if (folder / f"{offset}.compact").exists():
                break
            if not (folder / str(offset)).exists():
                raise _lost(folder / str(offset), "is gone")


def _newest(log: Path) -> list[Path]:
    """Return the two files of a log that Spark reads when it starts."""
    return [log / str(number) for number in sorted(_numbers(log))[-2:]]


def _since_compact(sources: Path) -> Iterator[Path]:
    """Yield the files that tell what sources have read: for each the last one that tells all, and those after it."""
    for source in sources.glob("*"):
        compact = max(_numbers(source, ".compact"), default=-1)
        if compact >= 0:
            yield source / f"{compact}.compact"
        yield from (source / str(number) for number in _numbers(source) if number > compact)


def _numbers(log: Path, suffix: str = "") -> list[int]:
    """Return the numbers of a log's files; those that Hadoop or a write under way keep beside them have none."""
    names = [path.name.removesuffix(suffix) for path in log.glob(f"*{suffix}")]
    return [int(name) for name in names if name.isdecimal()]


def _lost(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{path}, a file of Spark's in the checkpoint, {what}: restore the whole checkpoint from a copy, or start with a new one"
    )
