"""Segments that every reader has passed, removed when asked to, and never otherwise.

A reader is a query, by its checkpoint: it has passed what its last committed batch ended with. Spark never brings such a
batch again, so nothing needs the segments; a checkpoint that is restored from an older copy does, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skypane.places import Place
from skypane.runtime.receiving.segments import Segment, segments_of
from skypane.runtime.receiving.sums import remove
from skypane.types import CheckpointError


def committed(checkpoint: Path) -> dict[str, int]:
    """Return how far each input is read for good, by name, as a query's checkpoint on this machine tells.

    Raises CheckpointError for a folder that is no checkpoint of a query with many inputs, or is not whole.
    """
    return dict(_offset(checkpoint)["at"])


def _offset(checkpoint: Path) -> Mapping[str, Any]:
    """Return what the last committed batch ended with, of the one source with many inputs."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()]
    if not done:
        if (checkpoint / "metadata").exists():
            return {"at": {}}
        raise CheckpointError(
            f"{checkpoint} is no checkpoint of a query; name the folder that the query was started with"
        )
    path = checkpoint / "offsets" / str(max(done))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        offsets: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; restore the whole checkpoint from a copy") from error
    ours = [offset for offset in offsets if isinstance(offset.get("at"), dict)]
    if len(ours) != 1:
        raise CheckpointError(f"{path} tells of {len(ours)} sources with many inputs, and must of one")
    return ours[0]


def passed(folder: Path, checkpoints: Iterable[Path]) -> list[Segment]:
    """Return the segments that all of these queries have read, by their checkpoints; never the last, which grows.

    A query that has not read of the folder yet holds all of it. It knows the folder by its path, from the root.
    """
    path = str(Place.of(folder, "folder"))
    places = [_read_of(path, _offset(checkpoint)) for checkpoint in checkpoints]
    read = min(places, default=0)
    return [one for one in segments_of(str(folder))[:-1] if one.end <= read]


def _read_of(folder: str, offset: Mapping[str, Any]) -> int:
    """Return up to which byte a log was read: under the name that its query has for it, else under its path."""
    names = [name for name, log in offset.get("logs", {}).items() if log == folder] or [folder]
    return min(int(offset["at"].get(name, 0)) for name in names)


def remove_passed(folder: Path, checkpoints: Iterable[Path]) -> list[Segment]:
    """Remove those segments, oldest first, and return them."""
    gone = passed(folder, checkpoints)
    for one in gone:
        remove(one.path)
    return gone
