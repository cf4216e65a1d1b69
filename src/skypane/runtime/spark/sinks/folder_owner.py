"""Ownership of an output folder: one query, one running driver at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError

STAGE = "_staging"
"""Folder for incomplete files of a batch; readers ignore it because of the underscore."""

OWNER = "_skypane.json"
"""File that records which query writes into the folder, and what."""

ANSWERS, REJECTED, FRONT = "part", "late", "front"
"""Prefixes of file names, by content."""

_WORDS = {ANSWERS: "answers", REJECTED: "late rows", FRONT: "rows of the front"}


@dataclass(frozen=True, slots=True)
class QueryStart:
    """One driver start of a query, as passed to its sinks.

    query       name of the query, unchanged as long as its checkpoint exists
    driver      name of the driver: unique, and ordered after those of earlier drivers
    next_batch  the first uncommitted batch; a sink may hold a part of it
    before      location that the previous driver wrote to, if it was another folder or must be this one
    check       raises CheckpointError if this driver has been fenced
    role        what the sink takes: "output", "late", "front", or "output of <name>" for one of several queries
    """

    query: str
    driver: str = "driver"
    next_batch: int = 0
    before: str | None = None
    check: Callable[[], None] = lambda: None
    role: str = "output"


def staging(target: DocumentStore, driver: str) -> DocumentStore:
    """Return the staging folder of one driver; that of a fenced driver does not exist."""
    return target.child(STAGE).child(driver)


def take_folder(target: DocumentStore, claim: QueryStart, prefix: str) -> None:
    """Take exclusive ownership of a folder for a driver; its files are named `prefix`-<batch>-...

    Every change of the folder moves a file out of the driver's own staging folder or into it. This function removes the
    staging folders of earlier drivers, so that a fenced driver, however late it resumes, can change nothing. The
    staging folders are listed before `check` confirms that this driver is not fenced, so none of a later driver is
    among them. In an object store nothing is moved: object_folder.py says what a fenced driver can still do there.
    Raises CheckpointError if the folder belongs to another query, if it holds batches that the checkpoint does not
    know, or if this driver has been fenced.
    """
    _check_owner(target, claim, prefix)
    _check_batches(target, claim, prefix)
    if target.objects is not None:
        _take_objects(target, claim, prefix)
        return
    stage, mine = target.child(STAGE), staging(target, claim.driver)
    mine.make()
    there = [name for name in stage.folders() if name != claim.driver]
    strays = stage.names()  # files outside of all drivers' folders, put there by something else
    try:
        claim.check()
    except CheckpointError:
        stage.remove_folder(claim.driver)
        raise
    for other in there:
        driver_folders.end(stage, other, mine)
    driver_folders.remove(strays, stage, mine)
    mine.clear()
    if not target.has(OWNER):
        target.write_json(OWNER, {"query": claim.query, "holds": prefix}, drafts=mine)


def _take_objects(target: DocumentStore, claim: QueryStart, prefix: str) -> None:
    """Take a folder of an object store, where no files are moved (object_folder.py): remove what earlier drivers left."""
    stage = target.child(STAGE)
    earlier = [name for name in stage.folders() if name != claim.driver]
    claim.check()  # after the folders were listed, so none of a later driver is among them
    for driver in earlier:
        stage.remove_folder(driver)
    if target.version(OWNER) is None:
        try:
            target.write_version(OWNER, {"query": claim.query, "holds": prefix}, None)
        except ConflictError:  # another query has taken it at the same time
            _check_owner(target, claim, prefix)


def _check_owner(target: DocumentStore, claim: QueryStart, prefix: str) -> None:
    try:
        there = target.read_json(OWNER)
    except FileNotFoundError:
        if claim.before is not None:
            raise CheckpointError(
                f"the checkpoint has written to {claim.before} so far, but {target.path(OWNER)} does not exist; move "
                f"the old folder here with all its files, or, to write only new rows here, copy its {OWNER}"
            ) from None
        return
    except ValueError as error:
        raise CheckpointError(
            f"{target.path(OWNER)}, which names the query that owns this output, is damaged ({error}); restore it from "
            f"a copy, or choose another folder"
        ) from error
    for other in _WORDS.keys() - {prefix}:
        if there == {"query": claim.query, "holds": other}:
            raise CheckpointError(
                f"{target.root} holds the {_WORDS[other]} of this query, so {_WORDS[prefix]} cannot be written there; "
                f"choose another folder for them"
            )
    if there != {"query": claim.query, "holds": prefix}:
        raise CheckpointError(
            f"{target.root} holds the output of another query, or of a deleted checkpoint, which new batches would "
            f"overwrite; choose another folder, or remove this one"
        )


def _check_batches(target: DocumentStore, claim: QueryStart, prefix: str) -> None:
    """Raise CheckpointError if the folder is ahead of the checkpoint, because its windows would be answered again."""
    part = re.compile(rf"{re.escape(prefix)}-(\d{{12}})-\d{{5}}\.\w+")
    ahead = [name for name in target.names() if (match := part.fullmatch(name)) and int(match[1]) > claim.next_batch]
    if ahead:
        raise CheckpointError(
            f"{target.path(ahead[0])} and {len(ahead) - 1} more files are of batches after {claim.next_batch}, the "
            f"next batch of the checkpoint, which is older than the output; restore the output's matching copy, or "
            f"remove those files: their windows will be answered again"
        )
