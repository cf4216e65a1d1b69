"""Exact places of a batch at which a stream of a driver stands still, until the driver is killed, or wakes it.

The functions of the engine are replaced for all streams of a process. Which stream calls one shows in the path that it
works on, which lies in the stream's folder; only one stream of a process has a front in shards or threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Final, Self

import pyarrow as pa
from tests.runtime.driver import replace_method

from skypane.control.placement import DueRows, PlacementChoice
from skypane.runtime.spark.document_store import DRAFT, DocumentStore
from skypane.runtime.spark.engine import front_program
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.shard_stage import ShardClient
from skypane.runtime.spark.sinks.current_front import FILE
from skypane.runtime.spark.sinks.directory import Directory

BEFORE_SINK: Final = "before the sink"
BEFORE_MOVE: Final = "before a file moves into the output"
AFTER_SINK: Final = "after the sink"
BEFORE_COMMIT: Final = "before the commit"
IN_MANIFEST: Final = "in the middle of a manifest"
BEFORE_NAME: Final = "before a manifest gets its name"
AFTER_COMMIT: Final = "after the commit"
REMOVING: Final = "while partials are removed"
BEFORE_SPARK: Final = "before Spark commits"
BEFORE_FRONT: Final = "before the front moves"
AFTER_FRONT: Final = "after the front moves"
AFTER_SHARDS: Final = "after the shards have answered"
AFTER_THREADS: Final = "after the threads have compared"

PLACES: Final = (
    BEFORE_SINK, BEFORE_MOVE, AFTER_SINK, BEFORE_COMMIT, IN_MANIFEST, BEFORE_NAME, AFTER_COMMIT, REMOVING, BEFORE_SPARK,
)  # fmt: skip
"""What every batch into a folder comes to, or every few; the last one lies between the ledger's commit and Spark's."""
OF_FUNCTIONS: Final = (BEFORE_COMMIT, IN_MANIFEST, BEFORE_NAME, AFTER_COMMIT, REMOVING, BEFORE_SPARK)
OF_FRONTS: Final = (BEFORE_FRONT, AFTER_FRONT, AFTER_SHARDS, AFTER_THREADS)
UNFINISHED: Final = (BEFORE_SINK, BEFORE_MOVE, AFTER_SINK, BEFORE_COMMIT, IN_MANIFEST, BEFORE_NAME)
"""Places after which a drain is repeated. Spark does not commit a drain."""

_standing: dict[str, str] = {}
"""Where streams are to stand still, by their folders."""
_awake = Event()
_tell: Callable[[str], object] = print
_anywhere: Final = (
    PlacementChoice("driver"),
    PlacementChoice("threads", 2),
    PlacementChoice("spark", 2),
    PlacementChoice("threads", 3),
    PlacementChoice("spark", 3),
)
_IN_FRONTS: Final = {AFTER_SHARDS: PlacementChoice("spark", 2), AFTER_THREADS: PlacementChoice("threads", 2)}


def stand(folder: Path, place: str) -> None:
    """Have the stream in `folder` stand still at a place, once."""
    _awake.clear()
    _standing[str(folder)] = place


def wake() -> None:
    """Have all streams that stand still go on."""
    _standing.clear()
    _awake.set()


def reached(path: str, *places: str) -> None:
    """Stand still if the stream whose folder the path is in is to stand at one of these places."""
    for folder, place in [*_standing.items()]:
        if f"{path}/".startswith(f"{folder}/") and place in places and _standing.pop(folder, ""):
            _tell(folder)
            _awake.wait()


def install(tell: Callable[[str], object]) -> None:
    """Replace what has to be; `tell` is called with the folder of a stream that stands still."""
    global _tell  # noqa: PLW0603 - as the functions that are replaced
    _tell = tell

    replace_method(Directory, "write", _write)
    replace_method(DocumentStore, "move", _move)
    replace_method(DocumentStore, "open_output", _open_output)
    replace_method(Ledger, "commit", _commit)
    replace_method(front_program, "place_rows", _placed)
    replace_method(ShardClient, "_responses", _answered)
    replace_method(front_program.ContinuousProgram, "_compacted", _compacted)


def _write(original: Callable[..., None], sink: Directory, *args: Any) -> None:
    reached(sink.path, BEFORE_SINK)
    original(sink, *args)
    if sink.path.endswith("/out"):
        reached(sink.path, AFTER_SINK)


def _move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
    if target.root.endswith("/out") and to.startswith("part-"):
        reached(target.root, BEFORE_MOVE)
    elif target.root.endswith("/ledger"):
        reached(target.root, BEFORE_NAME)
    elif to == FILE:
        reached(target.root, BEFORE_FRONT)
    original(store, name, target, to)
    if store.root.endswith("/partials"):
        reached(store.root, REMOVING)
    elif to == FILE:
        reached(target.root, AFTER_FRONT)


def _open_output(original: Callable[..., pa.NativeFile], store: DocumentStore, name: str) -> Any:
    stream = original(store, name)
    return _Half(stream, lambda: reached(store.root, IN_MANIFEST)) if name.startswith(f"{DRAFT}0") else stream


def _commit(original: Callable[..., None], ledger: Ledger, *args: Any) -> None:
    root = ledger._root.root  # what says whose ledger this is
    reached(root, BEFORE_COMMIT)
    original(ledger, *args)
    reached(root, AFTER_COMMIT)


def _placed(original: Callable[..., Any], due: DueRows, *args: Any) -> Any:
    """Compare in the driver, in threads and in tasks, so that a kill may come before, between or after any two ways."""
    wanted = next((_IN_FRONTS[place] for place in [*_standing.values()] if place in _IN_FRONTS), None)
    return replace(original(due, *args), value=wanted or _anywhere[due.coming % len(_anywhere)])


def _answered(original: Callable[..., Any], client: ShardClient, *args: Any) -> Any:
    found = original(client, *args)
    reached(client.store.root, AFTER_SHARDS)
    return found


def _compacted(original: Callable[..., Any], *args: Any) -> Any:
    found = original(*args)
    for folder in [*_standing]:
        reached(folder, AFTER_THREADS)
    return found


class _Half:
    """A file that gets half of what is written before something else is done, and the rest after it."""

    def __init__(self, stream: pa.NativeFile, between: Callable[[], None]) -> None:
        self._stream, self._between = stream, between

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, data: bytes) -> None:
        self._stream.write(data[: len(data) // 2])
        self._stream.flush()
        self._between()
        self._stream.write(data[len(data) // 2 :])
