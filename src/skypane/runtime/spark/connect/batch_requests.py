"""Requests of a client to the engine of a running query, as files of the checkpoint.

    <checkpoint>/skypane/requests/stop.json            no further batch is to begin
    <checkpoint>/skypane/requests/scale-<time>.json    other numbers of workers from the next batch on

The engine reads them before each batch, and removes a request for workers once a batch with them is committed. A start
removes all that are left of an earlier one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from skypane.control.parallelism import Workers
from skypane.runtime.spark.document_store import DocumentStore
from skypane.snapshots import from_json, to_json

_STOP: Final = "stop.json"
_SCALE: Final = "scale-"


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """Requests of clients since the last batch.

    names    the files of the requests for workers
    workers  the last of these requests
    """

    stop: bool = False
    names: tuple[str, ...] = ()
    workers: Workers | None = None


@dataclass(frozen=True)
class BatchRequests:
    """The requests of one checkpoint."""

    checkpoint: str

    @property
    def _store(self) -> DocumentStore:
        return DocumentStore.at(self.checkpoint).child("skypane").child("requests")

    def stop(self) -> None:
        """Request that no further batch begins."""
        self._write(_STOP, {})

    def scale(self, workers: Workers) -> None:
        """Request numbers of workers; a later request replaces an earlier one."""
        self._write(f"{_SCALE}{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json", to_json(workers))

    def pending(self) -> PendingRequests:
        """Return what has been requested."""
        store = self._store
        names = store.names()
        scales = tuple(name for name in names if name.startswith(_SCALE))
        workers = from_json(Workers, store.read_json(scales[-1])) if scales else None
        return PendingRequests(_STOP in names, scales, workers)

    def remove(self, names: Iterable[str]) -> None:
        """Remove requests that were met."""
        self._store.remove(names)

    def clear(self) -> None:
        """Remove all requests."""
        self._store.clear()

    def _write(self, name: str, value: object) -> None:
        store = self._store
        store.make()
        store.write_json(name, value)
