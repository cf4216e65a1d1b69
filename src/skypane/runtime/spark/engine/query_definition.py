"""The definition of a checkpoint's query: a part that can never change, and a part that can."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.types import CheckpointError

DEFINITION = "definition.json"
FORMAT = 2

MAY_CHANGE = (
    "The numbers of a progress policy (delay, budget, bounds), splitting, workers and sinks may change; the query, its "
    "windows, the time and source columns, the kind of policy and the columns of the rows may not"
)


@dataclass(frozen=True)
class QueryDefinition:
    """The definition of a query, as JSON objects.

    fixed   identifies the query; with another value, the state in the checkpoint would have another meaning
    free    recorded for information; settle() keeps recorded keys that it lacks
    """

    fixed: Mapping[str, Any]
    free: Mapping[str, Any] = field(default_factory=dict)

    def check(self, root: DocumentStore, *, begun: bool) -> None:
        """Raise CheckpointError, naming each difference, if the checkpoint belongs to another query; change nothing.

        begun   whether the checkpoint has manifests, and therefore must have a definition
        """
        saved = _read(root)
        if saved is None:
            if begun:
                raise CheckpointError(
                    f"{root.path(DEFINITION)} is gone, while the ledger beside it has batches: restore it from a copy, "
                    f"or start again with a new checkpoint"
                )
            return
        differences = list(_differences("", saved["fixed"], _as_read(self.fixed)))
        if differences:
            raise CheckpointError(
                f"the checkpoint {root.root} belongs to another query: {'; '.join(differences)}. "
                f"Use another checkpoint, or restore the query. {MAY_CHANGE}"
            )

    def settle(self, root: DocumentStore, ownership: Ownership) -> str:
        """Write the definition as the driver in charge, and return the name of the query."""
        saved = _read(root)
        name = uuid.uuid4().hex if saved is None else str(saved["name"])
        free = {**({} if saved is None else saved["free"]), **self.free}
        wanted = _as_read({"format": FORMAT, "name": name, "fixed": self.fixed, "free": free})
        if saved != wanted:
            ownership.write(root, DEFINITION, wanted)
        return name

    @staticmethod
    def free_of(root: DocumentStore) -> dict[str, Any]:
        """Return the free part that the previous start recorded; empty before the first start."""
        saved = _read(root)
        return {} if saved is None else dict(saved["free"])


def _read(root: DocumentStore) -> dict[str, Any] | None:
    try:
        saved = root.read_json(DEFINITION)
        version, parts = (
            saved["format"],
            {"name": str(saved["name"]), "fixed": {**saved["fixed"]}, "free": {**saved["free"]}},
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
            f"use the version that wrote it, or start again with a new checkpoint"
        )
    return {"format": FORMAT, **parts}


def _as_read(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value after a round trip through JSON, which turns tuples into lists."""
    read: dict[str, Any] = json.loads(json.dumps(value))
    return read


def _differences(path: str, saved: Any, wanted: Any) -> list[str]:
    if isinstance(saved, dict) and isinstance(wanted, dict):
        keys = sorted({*saved, *wanted})
        return [
            line
            for key in keys
            for line in _differences(f"{path}.{key}" if path else key, saved.get(key), wanted.get(key))
        ]
    return [] if saved == wanted else [f"{path or 'definition'} was {saved!r}, is {wanted!r}"]
