"""A query that changes on a checkpoint: the change is shown before anything happens, and made by the first batch.

    shown      changes_of(): the recorded query and the new one are compared; nothing is written
    recorded   the start writes the new definition, and beside it the one before, with its last batch
    converted  rewritten(): the partials of the open panes are written anew, in files that no manifest names yet
    made       the manifest of the first batch names them; the definition before no longer counts

A kill before the last step leaves the manifest of the earlier query with its partials, so the next start, of the new
query or of the earlier one, begins from them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from skypane.operators.changes.comparison import OpenWindows, QueryChange, compare
from skypane.operators.changes.passed_rows import with_columns
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.late_rows import schema_of
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.query_definition import QueryDefinition, as_read
from skypane.runtime.spark.engine.window_state import WindowState

REWRITTEN = 99_998
"""Task number, in a file's name, of partials that were converted when the query changed."""

_DRAIN = "a drain of the earlier query was begun: start that query once, which finishes it"


def changes_of(store: DocumentStore, ledger: Ledger, plan: Plan, schema: pa.Schema) -> QueryChange:
    """Return the change from the query of the last committed batch to `plan` over rows of `schema`; write nothing.

    Raises CheckpointError if the definition or the newest manifest is damaged.
    """
    manifest = ledger.latest()
    recorded = QueryDefinition.recorded(store, -1 if manifest is None else manifest.batch_id)
    wanted = as_read(plan.definition(schema))
    if recorded is None or recorded == wanted:
        return QueryChange()
    change = compare(recorded, wanted, plan.query, schema, OpenWindows(plan.windows))
    if manifest is not None and not change.refused:
        state = WindowState.restored(plan, manifest.progress, manifest.operator)
        change = compare(recorded, wanted, plan.query, schema, _opened(plan, state))
    return replace(change, refused=(*change.refused, _DRAIN)) if ledger.drain_begun else change


def _opened(plan: Plan, state: WindowState) -> OpenWindows:
    return OpenWindows(
        plan.windows,
        frozenset(state.open.panes),
        frozenset(plan.windows.pane_at(pane.start) for pane in state.progress.held.panes),
        state.open.next_window,
        state.phases,
    )


def rewritten(change: QueryChange, state: WindowState, store: DocumentStore, batch_id: int) -> WindowState:
    """Return the state as that of the new query; its partials are written to files of batch `batch_id`."""
    state = replace(state, phases=change.phases)
    if not change.converts:
        return state
    panes = {pane: _written(store, batch_id, refs, change.partial) for pane, refs in state.open.panes.items()}
    rejected = schema_of(change.schema)
    ahead = _written(store, batch_id, state.ahead, lambda rows: with_columns(rows, rejected)) if state.ahead else ()
    return replace(state, open=replace(state.open, panes=panes), ahead=ahead)


def _written(
    store: DocumentStore,
    batch_id: int,
    refs: Iterable[PartialReference],
    convert: Callable[[pa.Table], pa.Table],
) -> tuple[PartialReference, ...]:
    read = PartialReader(store)
    return tuple(partials.write(store, attempt_name(batch_id, REWRITTEN), (convert(read(ref)) for ref in refs)))
