"""The state of a query that has changed: what is open before the change, and the partials as those of the new query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from skypane.operators.changes.comparison import OpenWindows, QueryChange
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.kept_panes import KeptPanes
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.window_state import WindowState

REWRITTEN = 99_998
"""Task number, in a file's name, of partials that were converted when the query changed."""
SHOWN = (
    "open windows have early answers as changes, whose rows the earlier query has to remove: drain it first, with drain() "
    "or `skypane run JOB --drain`"
)


def opened(plan: Plan, state: WindowState) -> OpenWindows:
    """Return the open windows of a query."""
    return OpenWindows(
        plan.windows,
        frozenset(state.open.panes),
        frozenset(plan.windows.pane_at(pane.start) for pane in state.progress.held.panes),
        state.open.next_window,
        state.phases,
    )


def begun(plan: Plan, first: int | None) -> WindowState:
    """Return the state of a query that has read no rows; its first window is `first`, or None if none is answered yet."""
    state = WindowState.initial(plan)
    if first is None:
        return state
    progress = plan.progress.close(state.progress, plan.windows.bounds(first)[0])
    return _final(replace(state, progress=progress, open=replace(state.open, next_window=first)))


def converted(change: QueryChange, state: WindowState, store: DocumentStore, batch_id: int) -> WindowState:
    """Return the state as that of the new query; its partials are written to files of batch `batch_id`."""
    state = _final(replace(state, phases=change.phases))
    if not change.converts:
        return state
    panes = {pane: _written(store, batch_id, refs, change.partial) for pane, refs in state.open.panes.items()}
    return replace(state, open=replace(state.open, panes=panes))


def _final(state: WindowState) -> WindowState:
    """Return the state without the panes that are kept for late rows: windows answered by another query are final."""
    return state if state.closed is None else replace(state, closed=KeptPanes.begun(state.open))


def _written(
    store: DocumentStore,
    batch_id: int,
    refs: Iterable[PartialReference],
    convert: Callable[[pa.Table], pa.Table],
) -> tuple[PartialReference, ...]:
    read = PartialReader(store)
    return tuple(partials.write(store, attempt_name(batch_id, REWRITTEN), (convert(read(ref)) for ref in refs)))
