"""The ledger: one manifest per micro-batch, written atomically.

    <checkpoint>/skypane/definition.json      definition of the query; other queries are rejected    query_definition.py
    <checkpoint>/skypane/owner/<driver>/      folder of the driver in charge                         ownership.py
    <checkpoint>/skypane/head.json            in an object store: the driver and the newest documents  checkpoint_head.py
    <checkpoint>/skypane/ledger/<batch>.json  manifest of the batch
    <checkpoint>/skypane/drain.json           number of the last drain's batch, or of the last readmission, begun or committed
    <checkpoint>/skypane/order.json           the order of the rows of the last batch in which it matters
    <checkpoint>/skypane/partials/*.arrow     partials that the newest manifest names; others are removed soon

Writing the manifest commits the batch; files that no manifest names are not part of the state. Spark replays a batch
that it has not committed; the engine then starts from the manifest before it, or skips the batch if it has a manifest.
Reading a ledger changes nothing; changing it requires the ownership that claim() takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.checkpoint_head import DRAIN, ORDER, paths_in_head, read_document
from skypane.runtime.spark.engine.head_ownership import HeadOwnership
from skypane.runtime.spark.engine.owner import Owner
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.engine.partials import PartialReference
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.snapshots import from_json, to_json
from skypane.types import CheckpointError

FORMAT = 2
WITH_OUTBOX = 3
"""Format of a manifest with rows that wait for their file: versions that would forget these cannot read it."""
KEEP = 100
"""Manifests kept; all but the newest are kept only for their metrics."""

_MORE = 20
"""Manifests more that an object store keeps, where they are removed with one request."""

_FOLDER = "ledger"
_MANIFEST = re.compile(r"(\d{12})\.json")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The committed state after one batch; each part is a JSON value written and read by its owner.

    fingerprint  fingerprint of the batch's rows
    progress     state of the progress policy
    operator     state of the program; for a windowed query the open panes and the next window
    control      states of the control policies, and the workers
    metrics      metrics of the batch
    drains       number of drains among the batches so far; Spark does not count them
    outbox       the rows that wait for a file of several batches, by sink (outbox.py)
    """

    batch_id: int
    fingerprint: dict[str, Any]
    progress: dict[str, Any]
    operator: dict[str, Any]
    control: dict[str, Any]
    metrics: dict[str, Any]
    drains: int
    outbox: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the manifest as it is written."""
        value = {name: getattr(self, name) for name in self.__slots__ if name != "outbox"}
        if not self.outbox:
            return {"format": FORMAT, **value}
        return {"format": WITH_OUTBOX, "outbox": self.outbox, "batch": value}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Return the manifest that was written; raise KeyError or TypeError if it is none."""
        has_outbox = document.get("format") == WITH_OUTBOX
        value, outbox = (document["batch"], document["outbox"]) if has_outbox else (document, {})
        return cls(**{name: value[name] for name in cls.__slots__ if name != "outbox"}, outbox=outbox)


@dataclass(frozen=True, slots=True)
class PendingReadmission:
    """Rejected rows that come a second time.

    reason   the reason for which they were rejected
    through  the last batch whose rejected rows are among them
    rows     their number
    ref      the rows, repaired, as a file among the partials
    """

    reason: str
    through: int
    rows: int
    ref: PartialReference


class Ledger:
    """Reads the manifests of one query, and writes them after claim()."""

    def __init__(self, store: DocumentStore) -> None:
        self._root = store
        self._store = store.child(_FOLDER)
        self._ownership: Owner | None = None
        #: the order of the rows of the running batch, by query
        self._noted: dict[str, Any] = {}
        self._batches = self._listed()

    def claim(self, definition: QueryDefinition) -> str:
        """Take ownership of the checkpoint for this driver, fence the previous one, and return the query's name.

        The query keeps this name as long as its checkpoint exists; a definition that is there stays. Raises CheckpointError, before anything is changed,
        if the checkpoint's definition differs, is damaged or missing, or if the newest manifest is damaged.
        """
        definition.check(self._root, self._last)
        self.latest()
        self._store.make()
        in_files = self._root.objects is None
        self._ownership = Ownership.take(self._root) if in_files else HeadOwnership.take(self._root)
        self._batches = self._listed()
        return definition.name(self._root) or definition.settle(self._root, self._ownership, self._last)

    @property
    def ownership(self) -> Owner:
        if self._ownership is None:
            raise CheckpointError(f"the checkpoint {self._root.root} is not claimed: it can only be read")
        return self._ownership

    def latest(self) -> Manifest | None:
        """Return the newest manifest; raise CheckpointError if it is damaged."""
        return self._read(self._batches[-1]) if self._batches else None

    def commit(self, manifest: Manifest) -> None:
        """Commit a batch, and remove manifests that are no longer kept.

        Raises CheckpointError if this driver was fenced: either before the commit, with nothing changed, or after it,
        with only old manifests left to remove.
        """
        self.ownership.write(self._store, _name(manifest.batch_id), manifest.document())
        self._batches.append(manifest.batch_id)
        self._noted = {}
        old = self._batches[:-KEEP]
        if len(old) > (0 if self._root.objects is None else _MORE):
            self.ownership.remove(self._store, map(_name, old))
            del self._batches[:-KEEP]

    def note_order(self, batch_id: int, query: str, order: Any) -> None:
        """Note the order in which a query reads a batch, before a sink receives anything that follows from it."""
        self._noted[query] = order
        self.ownership.write(self._root, ORDER, {"batch_id": batch_id, "queries": self._noted})

    def order(self, batch_id: int) -> Mapping[str, Any]:
        """Return what note_order() has noted of a batch that is not committed, by query."""
        try:
            noted = read_document(self._root, ORDER)
            return dict(noted["queries"]) if noted["batch_id"] == batch_id else {}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(self._root.path(ORDER), error) from error

    def empty_outbox(self) -> None:
        """Write the newest manifest again, without the rows that waited for their file: the sinks have them."""
        latest = self.latest()
        if latest is not None:
            self.ownership.write(self._store, _name(latest.batch_id), replace(latest, outbox={}).document())

    def begin_drain(self, batch_id: int, readmission: PendingReadmission | None = None) -> None:
        """Note that the next batch is a drain: once a sink may have received it, it must end before other batches.

        readmission   the rows that it brings, if it is not a drain but readmits rows
        """
        rows = {} if readmission is None else {"readmission": to_json(readmission)}
        self.ownership.write(self._root, DRAIN, {"batch_id": batch_id, **rows})

    @property
    def drain_begun(self) -> bool:
        """Whether a drain, or a batch of readmitted rows, was begun but not committed."""
        return self._begun() is not None

    @property
    def readmission_begun(self) -> PendingReadmission | None:
        """The rows of a batch that readmits rows and was begun but not committed; None if there is no such batch."""
        rows = (self._begun() or {}).get("readmission")
        return None if rows is None else from_json(PendingReadmission, rows)

    def _begun(self) -> dict[str, Any] | None:
        try:
            noted: dict[str, Any] = read_document(self._root, DRAIN)
            return noted if noted["batch_id"] > self._last else None
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(self._root.path(DRAIN), error) from error

    def history(self, last: int) -> list[dict[str, Any]]:
        """Return the metrics of the last batches, oldest first; without those that later commits remove meanwhile."""
        return self._metrics(self._batches[-last:] if last > 0 else [])

    def after(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the metrics of the batches after `batch_id` whose manifests are kept, oldest first."""
        return self._metrics([number for number in self._batches if number > batch_id])

    def _metrics(self, batches: Iterable[int]) -> list[dict[str, Any]]:
        manifests = (self._kept(number) for number in batches)
        return [one.metrics for one in manifests if one is not None]

    def _kept(self, batch_id: int) -> Manifest | None:
        """Return a manifest; None if a commit, of another thread or of the driver, has removed it as the oldest one."""
        try:
            return self._read(batch_id)
        except CheckpointError as error:
            is_gone = isinstance(error.__cause__, FileNotFoundError)
            if is_gone and sum(number > batch_id for number in self._listed()) >= KEEP:
                return None
            raise

    @property
    def _last(self) -> int:
        """The newest batch with a manifest; -1 if there is none."""
        return self._batches[-1] if self._batches else -1

    def _listed(self) -> list[int]:
        """Return the batches that have a manifest; other files, such as an editor's backup, are ignored."""
        # The files first: what another driver commits meanwhile is in the head then, and a start goes by the newest batch.
        names = {*self._store.names()}
        names |= {path.removeprefix(f"{_FOLDER}/") for path in paths_in_head(self._root)}
        return sorted(int(match[1]) for name in names if (match := _MANIFEST.fullmatch(name)))

    def _read(self, batch_id: int) -> Manifest:
        try:
            path = f"{_FOLDER}/{_name(batch_id)}"
            value = read_document(self._root, path) if batch_id == self._last else self._root.read_json(path)
            return Manifest.read(value)
        except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
            raise _damaged(f"manifest {self._store.path(_name(batch_id))}", error) from error


def _damaged(what: str, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{what} is damaged ({error!r}): restore it from a copy, or start again with a new checkpoint"
    )


def _name(batch_id: int) -> str:
    return f"{batch_id:012d}.json"
