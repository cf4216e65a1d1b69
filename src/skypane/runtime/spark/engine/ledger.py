"""The engine's memory: one manifest per micro-batch, written atomically, and the definition of the query.

    <checkpoint>/skypane/definition.json      what is asked; another query is refused
    <checkpoint>/skypane/owner/<driver>/      the driver in charge                                   ownership.py
    <checkpoint>/skypane/ledger/<batch>.json  what is true after the batch
    <checkpoint>/skypane/drain.json           the batch that the last drain is, begun or committed
    <checkpoint>/skypane/partials/*.arrow     the partials that the newest manifest names, and nothing else for long

A manifest is the commit: what it names is so, what it does not name never happened. Spark replays a batch that it
has not committed; the engine then starts from the manifest before it, or does nothing if the batch has one.
Reading a ledger changes nothing; what changes it needs the ownership that claim() takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from skypane.runtime.spark.engine.definition import Definition
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

FORMAT = 2
KEEP = 100
"""Manifests kept; all but the newest are there for their metrics only."""

_DRAIN = "drain.json"
_MANIFEST = re.compile(r"(\d{12})\.json")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is true after one batch; every part is a JSON value of its owner.

    fingerprint  what identifies the batch's rows
    progress     the punctuation law's state
    operator     what the program remembers: the open panes and the next window of a windowed query
    control      the states of the laws of control, and the workers
    metrics      what was said of the batch
    drains       how many of the batches so far were drains, of which Spark does not know
    """

    batch_id: int
    fingerprint: dict[str, Any]
    progress: dict[str, Any]
    operator: dict[str, Any]
    control: dict[str, Any]
    metrics: dict[str, Any]
    drains: int


class Ledger:
    """Reads the manifests of one query, and writes them once it is claimed."""

    def __init__(self, store: Store) -> None:
        self._root = store
        self._store = store.child("ledger")
        self._ownership: Ownership | None = None
        self._batches = self._listed()

    def claim(self, definition: Definition) -> str:
        """Take the checkpoint over for this driver, unless it is another query's.

        Returns the name that the query has for as long as its checkpoint lives. Raises CheckpointError, before anything
        is changed, if the definition there is another one, damaged, or gone, or the newest manifest is damaged.
        """
        definition.check(self._root, begun=bool(self._batches))
        self.latest()
        self._store.make()
        self._ownership = Ownership.take(self._root)
        self._batches = self._listed()
        return definition.settle(self._root, self._ownership)

    @property
    def ownership(self) -> Ownership:
        if self._ownership is None:
            raise CheckpointError(f"the checkpoint {self._root.root} is not claimed, so it may only be read")
        return self._ownership

    def latest(self) -> Manifest | None:
        """Return the newest manifest; raise CheckpointError if it is damaged."""
        return self._read(self._batches[-1]) if self._batches else None

    def commit(self, manifest: Manifest) -> None:
        """Make the batch true; forget manifests that are too old to matter.

        Raises CheckpointError if another driver has taken the checkpoint over: before the batch is true, with nothing
        changed, or after that, with all of it done that matters.
        """
        value = {"format": FORMAT, **{name: getattr(manifest, name) for name in Manifest.__slots__}}
        self.ownership.write(self._store, _name(manifest.batch_id), value)
        self._batches.append(manifest.batch_id)
        if old := self._batches[:-KEEP]:
            self.ownership.remove(self._store, map(_name, old))
            del self._batches[:-KEEP]

    def begin_drain(self, batch_id: int) -> None:
        """Note that the next batch is a drain: once a sink may have been told, it is finished before anything else."""
        self.ownership.write(self._root, _DRAIN, {"batch_id": batch_id})

    @property
    def drain_begun(self) -> bool:
        """Whether a drain was begun that is not committed."""
        try:
            return bool(self._root.read_json(_DRAIN)["batch_id"] > (self._batches[-1] if self._batches else -1))
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._root.path(_DRAIN)} is damaged ({error!r}): restore it from a copy, or start again with a new "
                f"checkpoint"
            ) from error

    def history(self, last: int) -> list[dict[str, Any]]:
        """Return the metrics of the last batches, oldest first."""
        return [self._read(batch_id).metrics for batch_id in self._batches[-last:]] if last > 0 else []

    def _listed(self) -> list[int]:
        """Return the batches that have a manifest; whatever else lies there, an editor's backup, is none of ours."""
        return [int(match[1]) for name in self._store.names() if (match := _MANIFEST.fullmatch(name))]

    def _read(self, batch_id: int) -> Manifest:
        try:
            value = self._store.read_json(_name(batch_id))
            return Manifest(**{name: value[name] for name in Manifest.__slots__})
        except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
            raise CheckpointError(
                f"manifest {self._store.path(_name(batch_id))} is damaged ({error!r}): restore it from a copy, "
                f"or start again with a new checkpoint"
            ) from error


def _name(batch_id: int) -> str:
    return f"{batch_id:012d}.json"
