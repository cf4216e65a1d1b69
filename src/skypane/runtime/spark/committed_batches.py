"""The batches that a query has committed, for observers outside of it: the checkpoint is only read."""

from __future__ import annotations

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.undisturbed import undisturbed


class CommittedBatches:
    """Reads the ledger of a checkpoint, on a disk or in an object store, which a driver may be writing."""

    def __init__(self, checkpoint: str) -> None:
        self._store = DocumentStore.at(checkpoint, "checkpoint").child("skypane")
        self._last = -1

    def new(self) -> list[BatchMetrics]:
        """Return the batches that were committed since the last call, oldest first; at first all whose manifests are kept.

        There are none before the first batch, and where there is no checkpoint yet. Raises CheckpointError if a manifest
        is damaged.
        """
        found = [BatchMetrics.from_json(value) for value in undisturbed(lambda: Ledger(self._store).after(self._last))]
        if found:
            self._last = found[-1].batch_id
        return found
