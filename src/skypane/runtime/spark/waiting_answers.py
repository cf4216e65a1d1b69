"""The answers that wait in a checkpoint for their file, for observers outside of the query: the checkpoint is only read."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.outbox import WaitingTables, restored
from skypane.runtime.spark.engine.partials import PARTIALS
from skypane.runtime.spark.engine.undisturbed import undisturbed

_OUTPUT: Final = "output"


def waiting_answers(checkpoint: str, batch_id: int) -> pa.Table | None:
    """Return the answers of a batch that wait for their file; None if there are none, or no longer.

    Raises CheckpointError if they, or the newest manifest, are damaged.
    """
    store = DocumentStore.at(checkpoint, "checkpoint").child("skypane")
    return undisturbed(lambda: _waiting(store, batch_id))


def _waiting(store: DocumentStore, batch_id: int) -> pa.Table | None:
    latest = Ledger(store).latest()
    waiting = () if latest is None else restored(latest.outbox).get(_OUTPUT, ())
    parts = tuple(ref for ref in waiting if ref.file.startswith(f"{batch_id:012d}-"))
    return pa.concat_tables(WaitingTables.of(store.child(PARTIALS), parts)) if parts else None
