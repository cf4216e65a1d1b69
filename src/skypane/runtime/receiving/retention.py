"""Remove segments that every reader has passed; only on request.

A reader is a query, named by its checkpoint; it has passed everything up to the end of its last committed batch. Spark
never replays a committed batch, so the segments are no longer needed. A checkpoint restored from an older copy still
needs them, and fails with a CheckpointError.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skypane.locations import Location
from skypane.runtime.receiving.checksums import remove
from skypane.runtime.receiving.segments import Segment, segments_of
from skypane.types import CheckpointError


def committed(checkpoint: Path) -> dict[str, int]:
    """Return the committed offset of each input, by name, from a query's checkpoint on this machine.

    Raises CheckpointError if the folder is not the checkpoint of a query with many inputs, or is incomplete.
    """
    return dict(_offset(checkpoint)["at"])


def committed_marks(checkpoint: Path) -> dict[str, list[Any]]:
    """Return what some inputs keep beside their committed offsets, by name; errors are those of committed()."""
    return dict(_offset(checkpoint).get("marks", {}))


def _offset(checkpoint: Path) -> Mapping[str, Any]:
    """Return the end offset of the last committed batch of the one source with many inputs."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()]
    if not done:
        if (checkpoint / "metadata").exists():
            return {"at": {}}
        raise CheckpointError(
            f"{checkpoint} is not the checkpoint of a query; use the folder that the query was started with"
        )
    path = checkpoint / "offsets" / str(max(done))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        offsets: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; restore the whole checkpoint from a copy") from error
    ours = [offset for offset in offsets if isinstance(offset.get("at"), dict)]
    if len(ours) != 1:
        raise CheckpointError(f"{path} must have one source with many inputs, and has {len(ours)}")
    return ours[0]


def passed(folder: Path, checkpoints: Iterable[Path]) -> list[Segment]:
    """Return the segments that the queries of all checkpoints have read; never the last segment, which grows.

    A query that has not read the folder yet retains all of it. Queries know the folder by its absolute path.
    """
    path = str(Location.of(folder, "folder"))
    offsets = [_read_of(path, _offset(checkpoint)) for checkpoint in checkpoints]
    read = min(offsets, default=0)
    return [one for one in segments_of(str(folder))[:-1] if one.end <= read]


def _read_of(folder: str, offset: Mapping[str, Any]) -> int:
    """Return up to which byte a query has read a log, looked up by the query's name for it, else by its path."""
    names = [name for name, log in offset.get("logs", {}).items() if log == folder] or [folder]
    return min(int(offset["at"].get(name, 0)) for name in names)


def remove_merged(folder: Path, at: int) -> list[Segment]:
    """Remove the segments of an input that are merged, up to the offset `at`, oldest first, and return them."""
    gone = [one for one in segments_of(str(folder))[:-1] if one.end <= at]
    for one in gone:
        remove(one.path)
    return gone


def remove_passed(folder: Path, checkpoints: Iterable[Path]) -> list[Segment]:
    """Remove the segments that all queries have read, oldest first, and return them."""
    gone = passed(folder, checkpoints)
    for one in gone:
        remove(one.path)
    return gone
