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
    sources = sorted(path for path in (root / "sources").glob("*") if path.is_dir())
    for folder in (root / "offsets", root / "commits", *sources):
        for path in _written(folder):
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
    _version, _about, *stands = _documents((root / "offsets" / str(max(begun))).read_bytes())
    for source, stand in enumerate(stands):
        if not (isinstance(stand, dict) and stand.keys() == {"logOffset"}):
            continue  # a source of another kind
        folder = root / "sources" / str(source)
        for offset in range(stand["logOffset"], -1, -1):
            if (folder / f"{offset}.compact").exists():
                break
            if not (folder / str(offset)).exists():
                raise _lost(folder / str(offset), "is gone")


def _written(folder: Path) -> list[Path]:
    """Return the files of a log; those that Hadoop or a write under way keep beside them are none."""
    return [path for path in sorted(folder.glob("*")) if path.name.removesuffix(".compact").isdecimal()]


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in _written(folder) if path.name.isdecimal()]


def _lost(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{path}, a file of Spark's in the checkpoint, {what}: restore the whole checkpoint from a copy, or start with a new one"
    )
