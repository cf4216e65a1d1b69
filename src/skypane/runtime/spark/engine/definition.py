"""What is asked of a checkpoint: the part that may never change while it lives, and the part that may."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

DEFINITION = "definition.json"
FORMAT = 2

MAY_CHANGE = (
    "The numbers of a progress policy (delay, budget, bounds), splitting, workers and sinks may change; the query, its "
    "windows, the time and source columns, the kind of policy and the columns of the rows may not"
)


@dataclass(frozen=True)
class Definition:
    """The definition of a query, as JSON objects.

    fixed   another value is another query: what is kept in the checkpoint would not mean the same
    free    noted, so that one who looks finds it; what it says nothing of stays as it was noted
    """

    fixed: Mapping[str, Any]
    free: Mapping[str, Any] = field(default_factory=dict)

    def check(self, root: Store, *, begun: bool) -> None:
        """Raise CheckpointError, naming each difference, if the checkpoint is another query's; change nothing.

        begun   whether the checkpoint has manifests: then it must have a definition
        """
        there = _read(root)
        if there is None:
            if begun:
                raise CheckpointError(
                    f"{root.path(DEFINITION)} is gone, while the ledger beside it has batches: restore it from a copy, "
                    f"or start again with a new checkpoint"
                )
            return
        differences = list(_differences("", there["fixed"], _as_read(self.fixed)))
        if differences:
            raise CheckpointError(
                f"the checkpoint {root.root} belongs to another query: {'; '.join(differences)}. "
                f"Use another checkpoint, or put the query back. {MAY_CHANGE}"
            )

    def settle(self, root: Store, ownership: Ownership) -> str:
        """Write the definition down for the driver in charge; return the name of the query."""
        there = _read(root)
        name = uuid.uuid4().hex if there is None else str(there["name"])
        free = {**({} if there is None else there["free"]), **self.free}
        wanted = _as_read({"format": FORMAT, "name": name, "fixed": self.fixed, "free": free})
        if there != wanted:
            ownership.write(root, DEFINITION, wanted)
        return name

    @staticmethod
    def free_of(root: Store) -> dict[str, Any]:
        """Return the free part that the last start has noted; nothing, before the first."""
        there = _read(root)
        return {} if there is None else dict(there["free"])


def _read(root: Store) -> dict[str, Any] | None:
    try:
        there = root.read_json(DEFINITION)
        version, parts = (
            there["format"],
            {"name": str(there["name"]), "fixed": {**there["fixed"]}, "free": {**there["free"]}},
        )
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
            f"go on with the version that wrote it, or start again with a new checkpoint"
        )
    return {"format": FORMAT, **parts}


def _as_read(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value as JSON gives it back: a tuple is a list there."""
    read: dict[str, Any] = json.loads(json.dumps(value))
    return read


def _differences(path: str, there: Any, wanted: Any) -> list[str]:
    if isinstance(there, dict) and isinstance(wanted, dict):
        keys = sorted({*there, *wanted})
        return [
            line
            for key in keys
            for line in _differences(f"{path}.{key}" if path else key, there.get(key), wanted.get(key))
        ]
    return [] if there == wanted else [f"{path or 'definition'} was {there!r}, is {wanted!r}"]
