"""Whose output a folder is: one query's, one start of it at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from skypane.runtime.spark import folders
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

STAGE = "_staging"
"""Folder, unseen by readers because of its underscore, in which the files of a batch wait for being complete."""

OWNER = "_skypane.json"
"""File that says which query writes into the folder, and what."""

ANSWERS, REJECTED, FRONT = "part", "late", "front"
"""How the files' names begin, by what they hold."""

_WORDS = {ANSWERS: "answers", REJECTED: "late rows", FRONT: "rows of the front"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One start of a query, as its sinks are told of it.

    query       name of the query, for as long as its checkpoint lives
    driver      name of this start: no other has it, and it comes after those of the starts before
    next_batch  the first batch that is not committed; what a sink has of it may be half of it
    before      the place that the last start wrote to, if it was another folder or is expected to be this one
    check       raises CheckpointError if another start has taken the checkpoint over since
    """

    query: str
    driver: str = "driver"
    next_batch: int = 0
    before: str | None = None
    check: Callable[[], None] = lambda: None


def staging(target: Store, driver: str) -> Store:
    """Return the folder in which the files of one start wait: for a start that was taken over it is not there."""
    return target.child(STAGE).child(driver)


def take_folder(target: Store, claim: Claim, prefix: str) -> None:
    """Make a folder this start's alone; its files are named `prefix`-<batch>-...

    Every change of the folder moves a file out of the start's own staging folder or into it. Those of the starts before
    are removed here, so that a driver that has been taken over, however late it wakes, can change nothing: of those that
    it has listed when it finds itself in charge, none is of a start after it.
    Raises CheckpointError if the folder is another query's, or has batches that the checkpoint knows nothing of, or if
    another start has taken over.
    """
    _check_owner(target, claim, prefix)
    _check_batches(target, claim, prefix)
    stage, mine = target.child(STAGE), staging(target, claim.driver)
    mine.make()
    there = [name for name in stage.folders() if name != claim.driver]
    strays = stage.names()  # in no driver's folder: something else has put them there
    try:
        claim.check()
    except CheckpointError:
        stage.remove_folder(claim.driver)
        raise
    for other in there:
        folders.end(stage, other, mine)
    folders.remove(strays, stage, mine)
    mine.clear()
    if not target.has(OWNER):
        target.write_json(OWNER, {"query": claim.query, "holds": prefix}, drafts=mine)


def _check_owner(target: Store, claim: Claim, prefix: str) -> None:
    try:
        there = target.read_json(OWNER)
    except FileNotFoundError:
        if claim.before is not None:
            raise CheckpointError(
                f"the checkpoint has written to {claim.before} so far, and {target.path(OWNER)} does not say that this "
                f"folder goes on from there: move the old folder here with all its files, or, to have only what comes "
                f"from now on here, copy its {OWNER}"
            ) from None
        return
    except ValueError as error:
        raise CheckpointError(
            f"{target.path(OWNER)}, which says whose output this is, is damaged ({error}): restore it from a copy, "
            f"or choose another folder"
        ) from error
    for other in _WORDS.keys() - {prefix}:
        if there == {"query": claim.query, "holds": other}:
            raise CheckpointError(
                f"{target.root} holds the {_WORDS[other]} of this query, and {_WORDS[prefix]} are to go there: "
                f"they need a folder of their own"
            )
    if there != {"query": claim.query, "holds": prefix}:
        raise CheckpointError(
            f"{target.root} holds the output of another query, or of a checkpoint that is gone: "
            f"batches would overwrite its files; choose another folder, or remove this one"
        )


def _check_batches(target: Store, claim: Claim, prefix: str) -> None:
    """Refuse a folder that is ahead of the checkpoint: its windows would be answered a second time, in other batches."""
    part = re.compile(rf"{re.escape(prefix)}-(\d{{12}})-\d{{5}}\.\w+")
    ahead = [name for name in target.names() if (match := part.fullmatch(name)) and int(match[1]) > claim.next_batch]
    if ahead:
        raise CheckpointError(
            f"{target.path(ahead[0])} and {len(ahead) - 1} more files are of batches after {claim.next_batch}, which the "
            f"checkpoint has yet to come to: it is an older copy than the output. Restore the copy of the output that "
            f"belongs to it, or remove those files: their windows will be answered again"
        )
