"""A start without a late sink, after one that had one: what it has begun or kept for that sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.handover import RECORD
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.partials import PartialReference
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.types import CheckpointError
from skypane.wording import counted

_NONE_NOW: Final = "the last start had a late sink, and this one has none"


def missed(ledger: Ledger, store: DocumentStore, settings: JobSettings) -> str | None:
    """Return, in one line, the rows that the late sink of the start before would have received; None if there are none.

    Raises CheckpointError if this start would have to reject them at once: it finishes a drain or a readmission.
    """
    if settings.sinks.late is not None or "late" not in QueryDefinition.free_of(store).get("places", {}):
        return None
    latest = ledger.latest()
    held = 0 if latest is None else held_rows(latest.operator)
    _check_begun(ledger, held)
    parts = []
    if held:
        parts.append(f"{counted(held, 'rows')} far ahead of the others {'is' if held == 1 else 'are'} kept for it")
    begun = spark_files.last_begun(DocumentStore.at(settings.checkpoint))
    committed = -1 if latest is None else latest.batch_id - latest.drains
    if begun > committed:
        parts.append(f"batch {begun}, which was begun with it, is repeated")
    if not parts:
        return None
    return (
        f"{_NONE_NOW}: {', and '.join(parts)}; rows that are rejected from now on are only counted, so stop this query and "
        f"start it with late= if you need them"
    )


def held_rows(operator: Mapping[str, Any]) -> int:
    """Return the number of held rows that are kept for a late sink, by the snapshot of a program's state."""
    if "queries" in operator:
        return max(map(held_rows, operator["queries"].values()), default=0)
    earlier = held_rows(operator[RECORD]["state"]) if RECORD in operator else 0
    return max(earlier, sum(PartialReference.restored(ref).rows for ref in operator["ahead"]))


def _check_begun(ledger: Ledger, held: int) -> None:
    readmission = ledger.readmission_begun
    if readmission is not None:
        what, rows = "a readmission", readmission.rows
    elif ledger.drain_begun and held:
        what, rows = "a drain", held
    else:
        return
    raise CheckpointError(
        f"{_NONE_NOW}, but it would finish {what} that was begun with it, and might reject {counted(rows, 'rows')} that no "
        f"sink would receive: start the query with late= as it was, or with late=sp.Console() to print them"
    )
