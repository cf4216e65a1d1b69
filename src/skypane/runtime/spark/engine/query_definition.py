"""The definition of a checkpoint's query: a part that identifies it, and a part that is free to change.

A query that continues from the state of another one, or by other rules, records that one, too, until a batch of its own
is committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.checkpoint_head import DEFINITION, read_document
from skypane.runtime.spark.engine.owner import Owner
from skypane.snapshots import through_json
from skypane.types import CheckpointError

FORMAT = 2

_EARLIER = "earlier"
"""Key of the query that committed the last batches, or has delivered the next one, if it is another one."""
_RULES = ("progress", "rules")
"""Keys of the free part from which answers follow."""

MAY_CHANGE = (
    "The numbers of a progress policy (delay, budget, bounds), splitting, workers and sinks may change; the functions "
    "and filters of an aggregate, a k to a smaller one, and columns that are only passed on may, too; windows, keys, "
    "preference, time and source columns and the kind of policy may not. `skypane run JOB --dry-run` and changes() of "
    "the job show the effect of each change; start(begin='at_offsets') begins another query where this one has stopped reading"
)

SEVERAL_MAY_CHANGE = (
    "Each of several queries may change as a single one may, a query may be added, and one whose windows are all answered "
    "may be removed; so after a drain a query that cannot continue may be removed, and added under another name. "
    "`skypane run JOB --dry-run` and changes() of the job show the effect of each change"
)


@dataclass(frozen=True)
class QueryDefinition:
    """The definition of a query, as JSON objects.

    fixed   identifies the query; with another value, the state in the checkpoint would have another meaning
    free    recorded for information; settle() keeps recorded keys that it lacks
    continues  the fixed part of the earlier query whose state this one continues from, if it may
    """

    fixed: Mapping[str, Any]
    free: Mapping[str, Any] = field(default_factory=dict)
    continues: Mapping[str, Any] | None = None

    def check(self, root: DocumentStore, last: int) -> None:
        """Raise CheckpointError, naming each difference, if the checkpoint belongs to another query; change nothing.

        last   the newest batch with a manifest, -1 if there is none; with one there must be a definition
        """
        recorded = self.recorded(root, last)
        if recorded is None:
            if last >= 0:
                raise CheckpointError(
                    f"{root.path(DEFINITION)} is gone, while the ledger beside it has batches: restore it from a copy, "
                    f"or start again with a new checkpoint"
                )
            return
        differences = list(_differences("", recorded, through_json(self.fixed)))
        if differences and recorded != self.continues:
            raise CheckpointError(
                f"the checkpoint {root.root} belongs to another query: {'; '.join(differences)}. "
                f"Use another checkpoint, or restore the query. {MAY_CHANGE}"
            )

    def settle(self, root: DocumentStore, ownership: Owner, last: int) -> str:
        """Write the definition as the driver in charge, and return the name of the query.

        last   the last batch that is not of this start, -1 if there is none; if it is of another query, that one is kept, too
        """
        saved, earlier = _read(root), self.of_batch(root, last)
        name = uuid.uuid4().hex if saved is None else str(saved["name"])
        free = {**({} if saved is None else saved["free"]), **self.free}
        wanted = through_json({"format": FORMAT, "name": name, "fixed": self.fixed, "free": free})
        if last >= 0 and earlier is not None and not earlier.answers_as(QueryDefinition(self.fixed, free)):
            wanted[_EARLIER] = {"last": last, "fixed": earlier.fixed, "free": earlier.rules}
        if saved != wanted:
            ownership.write(root, DEFINITION, wanted)
        return name

    @staticmethod
    def recorded(root: DocumentStore, last: int) -> dict[str, Any] | None:
        """Return the fixed part of the query that committed batch `last`; None before the first start."""
        found = QueryDefinition.of_batch(root, last)
        return None if found is None else dict(found.fixed)

    @staticmethod
    def of_batch(root: DocumentStore, batch: int) -> QueryDefinition | None:
        """Return the definition by which a batch was committed, or delivered; None before the first start."""
        saved = _read(root)
        if saved is None:
            return None
        earlier = saved.get(_EARLIER)
        of = saved if earlier is None or batch > earlier["last"] else earlier
        return QueryDefinition(of["fixed"], of["free"])

    @property
    def rules(self) -> dict[str, Any]:
        """The part of `free` from which answers follow; empty if an earlier version of skypane has recorded none."""
        return {key: self.free[key] for key in _RULES} if self.free.keys() >= {*_RULES} else {}

    def answers_as(self, other: QueryDefinition) -> bool:
        """Return whether a batch has the same answers by both definitions, as far as they are recorded."""
        mine, others = through_json([self.fixed, self.rules]), through_json([other.fixed, other.rules])
        return mine == others or (mine[0] == others[0] and not (self.rules and other.rules))

    @staticmethod
    def name(root: DocumentStore) -> str:
        """Return the name of the query; empty before the first start."""
        saved = _read(root)
        return "" if saved is None else str(saved["name"])

    @staticmethod
    def free_of(root: DocumentStore) -> dict[str, Any]:
        """Return the free part that the previous start recorded; empty before the first start."""
        saved = _read(root)
        return {} if saved is None else dict(saved["free"])


def _read(root: DocumentStore) -> dict[str, Any] | None:
    try:
        saved = read_document(root, DEFINITION)
        version, parts = (
            saved["format"],
            {"name": str(saved["name"]), "fixed": {**saved["fixed"]}, "free": {**saved["free"]}},
        )
        if (earlier := saved.get(_EARLIER)) is not None:
            free = {**earlier.get("free", {})}  # which earlier versions of skypane do not write
            parts[_EARLIER] = {"last": int(earlier["last"]), "fixed": {**earlier["fixed"]}, "free": free}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{root.path(DEFINITION)} is damaged ({error!r}): restore it from a copy, "
            f"or start again with a new checkpoint"
        ) from error
    if version != FORMAT:
        raise CheckpointError(
            f"{root.path(DEFINITION)} is of format {version!r}, and this version of skypane reads format {FORMAT}: "
            f"use the version that wrote it, or start again with a new checkpoint"
        )
    return {"format": FORMAT, **parts}


def _differences(path: str, saved: Any, wanted: Any) -> list[str]:
    if isinstance(saved, dict) and isinstance(wanted, dict):
        keys = sorted({*saved, *wanted})
        return [
            line
            for key in keys
            for line in _differences(f"{path}.{key}" if path else key, saved.get(key), wanted.get(key))
        ]
    return [] if saved == wanted else [f"{path or 'definition'} was {saved!r}, is {wanted!r}"]
