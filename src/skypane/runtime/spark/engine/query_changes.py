"""A query that changes on a checkpoint: the change is shown before anything happens, and made by the first batch.

    shown      changes_of(): the recorded query and the new one are compared; nothing is written
    recorded   the start writes the new definition, and beside it the one before, with its last batch
    converted  rewritten(): the partials of the open panes are written again, to files that no manifest names yet
    made       the manifest of the first batch names them; the definition before no longer counts

A kill before the last step leaves the manifest of the earlier query with its partials, so the next start, of the new
query or of the earlier one, begins from them again.

A query that cannot continue may begin at the offsets of the earlier one, if that was drained: all rows that it has read
are then answered or rejected, so the new query needs none of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import pyarrow as pa

from skypane.operators.changes.comparison import NewStart, OpenWindows, QueryChange, compare
from skypane.operators.changes.shared_comparison import QUERIES
from skypane.plan import ContinuousPlan, Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import shared_changes
from skypane.runtime.spark.engine.changed_state import begun, converted, opened, with_held
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.query_definition import QueryDefinition, as_read
from skypane.runtime.spark.engine.shared_program import SharedState
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.shared_plan import SharedPlan
from skypane.types import ConfigError, Micros
from skypane.wording import counted, stamp

Begin: TypeAlias = Literal["at_offsets"]

_BEGUN = "a drain or a readmission of the earlier query was begun: start that query once, which finishes it"


def changes_of(
    store: DocumentStore, ledger: Ledger, plan: Plan | SharedPlan, schema: pa.Schema, begin: Begin | None = None
) -> QueryChange:
    """Return the change from the query of the last committed batch to `plan` over rows of `schema`; write nothing.

    begin   where a query begins that cannot continue from the state of the earlier one

    Raises CheckpointError if the definition or the newest manifest is damaged.
    """
    manifest = ledger.latest()
    recorded = QueryDefinition.recorded(store, -1 if manifest is None else manifest.batch_id)
    wanted = as_read(plan.definition(schema))
    if recorded is None or recorded == wanted:
        return QueryChange()
    if isinstance(plan, SharedPlan) != (QUERIES in recorded):
        return QueryChange(refused=("a query alone and several queries (sp.streams) cannot continue from each other",))
    if isinstance(plan, SharedPlan):
        change = shared_changes.compared(recorded, wanted, manifest, plan, schema)
        return replace(change, refused=(*change.refused, _BEGUN)) if ledger.drain_begun else change
    change = compare(recorded, wanted, plan.query, schema, OpenWindows(plan.windows))
    if manifest is not None and not change.refused:
        state = WindowState.restored(plan, manifest.progress, manifest.operator)
        change = compare(recorded, wanted, plan.query, schema, opened(plan, state))
    if ledger.drain_begun:
        return replace(change, refused=(*change.refused, _BEGUN))
    if change.refused and begin is not None and manifest is not None:
        return _without_state(change, manifest, plan)
    return change


def check_begin(begin: object) -> None:
    """Raise ConfigError unless `begin` is None or a known beginning."""
    if begin is not None and begin not in get_args(Begin):
        raise ConfigError(f"begin must be 'at_offsets' or None, got {begin!r}")


def _without_state(change: QueryChange, manifest: Manifest, plan: Plan) -> QueryChange:
    """Return the change to a query that begins at the offsets of the earlier one."""
    panes, held = manifest.operator.get("panes"), manifest.operator.get("ahead")
    if panes is None or isinstance(plan, ContinuousPlan):
        return replace(change, refused=(*change.refused, _FRONT))
    if panes or held:
        return replace(change, refused=(*change.refused, f"{counted(len(panes), 'panes')} {_OPEN}"))
    end = manifest.metrics["punctuation"]
    first = None if end is None else -((plan.windows.offset - end) // plan.windows.slide)
    begins = (f"the query is another one, and begins at the offsets of the earlier one{_from(plan, end, first)}",)
    return QueryChange(begins=begins, query=plan.query, recorded=change.recorded, start=NewStart(first))


def _from(plan: Plan, end: Micros | None, first: int | None) -> str:
    if first is None:
        return ""
    begin, after = plan.windows.bounds(first)
    return (
        f", which has answered all windows to {stamp(end)}; the first window of the new one is {stamp(begin)} to "
        f"{stamp(after)}, and rows before it are late"
    )


_FRONT = "a continuous skyline cannot begin at offsets, or be replaced there: use another checkpoint"
_OPEN = (
    "of the earlier query hold rows that have been read: answer them by a drain of that query, with drain() or "
    "`skypane run JOB --drain`"
)


def beginning(change: QueryChange, manifest: Manifest | None, plan: Plan | SharedPlan) -> Manifest | None:
    """Return the manifest from which the new query's state is restored: the newest one, or that of a new beginning."""
    if change and manifest is not None and isinstance(plan, SharedPlan):
        return shared_changes.beginning(change, manifest, plan)
    if change.start is None or manifest is None or isinstance(plan, SharedPlan):
        return manifest
    state = begun(plan, change.start.first)
    return replace(manifest, progress=plan.progress.snapshot(state.progress), operator=state.snapshot())


def rewritten(
    change: QueryChange, state: WindowState | SharedState, store: DocumentStore, batch_id: int
) -> WindowState | SharedState:
    """Return the state as that of the new query; its partials are written to files of batch `batch_id`."""
    if isinstance(state, SharedState):
        return shared_changes.rewritten(change, state, store, batch_id)
    if change.start is not None:
        return state
    state = converted(change, state, store, batch_id)
    return with_held(state, change.schema, store, batch_id) if change.converts else state
