"""A query that changes on a checkpoint: the change is shown before anything happens, and made by the first batch.

    shown      changes_of(): the recorded query and the new one are compared; nothing is written
    recorded   the start writes the new definition, and beside it the one before, with its last batch
    converted  rewritten(): the partials of the open panes are written again, to files that no manifest names yet
    made       the manifest of the first batch names them; the definition before no longer counts

A kill before the last step leaves the manifest of the earlier query with its partials, so the next start, of the new
query or of the earlier one, begins from them again.

A query that cannot continue may begin at the offsets of the earlier one. If that was drained, all rows that it has read
are answered or rejected, so the new query needs none of them. Else it runs beside the new one until it has answered
the windows that hold rows read before the change (handover.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

import pyarrow as pa

from skypane.operators.changes.comparison import NewStart, OpenWindows, QueryChange, compare
from skypane.operators.changes.first_windows import first_from, reached
from skypane.operators.changes.shared_comparison import QUERIES
from skypane.plan import ContinuousPlan, Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import shared_changes
from skypane.runtime.spark.engine.changed_state import SHOWN, begun, converted, opened
from skypane.runtime.spark.engine.handover import RECORD, Handover
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.spark.engine.shared_program import SharedState
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.shared_plan import SharedPlan
from skypane.snapshots import through_json
from skypane.types import ConfigError, Micros
from skypane.wording import counted, exact_stamp

Begin: TypeAlias = Literal["at_offsets"]

_BEGUN = "a drain or a readmission of the earlier query was begun: start that query once, which finishes it"


def changes_of(
    store: DocumentStore,
    ledger: Ledger,
    plan: Plan | SharedPlan,
    schema: pa.Schema,
    begin: Begin | None = None,
    rows: pa.Schema | None = None,
) -> QueryChange:
    """Return the change from the query of the last committed batch to `plan` over rows of `schema`; write nothing.

    begin   where a query begins that cannot continue from the state of the earlier one
    rows    schema of all columns that the job's rows have, if they are more than those of `schema`

    Raises CheckpointError if the definition or the newest manifest is damaged, or if an earlier query that still answers
    windows cannot continue.
    """
    manifest = ledger.latest()
    recorded = QueryDefinition.recorded(store, -1 if manifest is None else manifest.batch_id)
    wanted = through_json(plan.definition(schema))
    rows = schema if rows is None else rows
    if recorded is None or recorded == wanted:
        _check_earlier(manifest, plan, rows)
        return QueryChange()
    if isinstance(plan, SharedPlan) != (QUERIES in recorded):
        return QueryChange(refused=("a query alone and several queries (sp.streams) cannot continue from each other",))
    if isinstance(plan, SharedPlan):
        change = shared_changes.compared(recorded, wanted, manifest, plan, schema)
    else:
        change = _of_one(recorded, wanted, manifest, plan, schema)
    if ledger.drain_begun:
        return replace(change, refused=(*change.refused, _BEGUN))
    if not change.refused or begin is None or manifest is None:
        return change
    if isinstance(plan, SharedPlan) or _answers_beside(manifest):
        return change
    return _without_state(change, manifest, plan, rows)


def _answers_beside(manifest: Manifest | None) -> TypeGuard[Manifest]:
    """Return whether the query has taken over from an earlier one that still answers beside it."""
    return manifest is not None and RECORD in manifest.operator


def _of_one(
    recorded: Mapping[str, Any],
    wanted: Mapping[str, Any],
    manifest: Manifest | None,
    plan: Plan | ContinuousPlan,
    schema: pa.Schema,
) -> QueryChange:
    """Return the change of a query alone that continues from its state."""
    if _answers_beside(manifest):
        return QueryChange(refused=(_TAKING_OVER,), recorded=recorded)
    change = compare(recorded, wanted, plan.query, schema, OpenWindows(plan.windows))
    if manifest is None or change.refused:
        return change
    state = WindowState.restored(plan, manifest.progress, manifest.operator)
    change = compare(recorded, wanted, plan.query, schema, opened(plan, state))
    if state.early is not None and state.early.shown:
        change = replace(change, refused=(*change.refused, SHOWN))
    return change


def _check_earlier(manifest: Manifest | None, plan: Plan | SharedPlan, rows: pa.Schema) -> None:
    """Raise CheckpointError if an earlier query that still answers windows cannot run over these rows."""
    if _answers_beside(manifest) and not isinstance(plan, SharedPlan):
        Handover.restored(manifest.operator[RECORD], plan, rows)


def check_begin(begin: object) -> None:
    """Raise ConfigError unless `begin` is None or a known beginning."""
    if begin is not None and begin not in get_args(Begin):
        raise ConfigError(f"begin must be 'at_offsets' or None, got {begin!r}")


def _without_state(change: QueryChange, manifest: Manifest, plan: Plan, rows: pa.Schema) -> QueryChange:
    """Return the change to a query that begins at the offsets of the earlier one."""
    if isinstance(plan, ContinuousPlan):
        return replace(change, refused=(*change.refused, _FRONT))
    panes = manifest.operator["panes"]
    if panes or manifest.operator["ahead"]:
        try:
            return _beside(change, manifest, plan, rows)
        except ConfigError as error:
            why = f"{counted(len(panes), 'panes')} {_OPEN}, which cannot run beside the new one: {error}. {_DRAIN}"
            return replace(change, refused=(*change.refused, why))
    end = manifest.metrics["punctuation"]
    first = None if end is None else first_from(plan.windows, end)
    begins = (f"the query is another one, and begins at the offsets of the earlier one{_from(plan, end, first)}",)
    return QueryChange(begins=begins, query=plan.query, recorded=change.recorded, start=NewStart(first))


def _beside(change: QueryChange, manifest: Manifest, plan: Plan, rows: pa.Schema) -> QueryChange:
    """Return the change to a query that begins while the earlier one still answers windows."""
    if "closed" in manifest.operator:
        raise ConfigError("it amends its answers")
    if "early" in manifest.operator:
        raise ConfigError("it answers windows early")
    handover = Handover.of(change.recorded, 0, plan, rows)
    state = WindowState.restored(handover.before, manifest.progress, manifest.operator)
    if state.progress.held.rows:
        raise ConfigError(
            f"{counted(state.progress.held.rows, 'rows')} are held, as they are far ahead of all others, and it has not "
            f"decided on them yet"
        )
    until = reached(handover.before.windows, state.open.panes, state.progress.punctuation)
    if until is None:
        raise ConfigError("no row of its open panes is known")
    start = first_from(plan.windows, until)
    handover = replace(handover, first=start)
    begin, after = map(exact_stamp, plan.windows.bounds(start))
    last = " to ".join(map(exact_stamp, handover.before.windows.bounds(handover.last)))
    new = (
        f"the query is another one, and begins at the offsets of the earlier one; its first window is {begin} to "
        f"{after}, the first that holds no row read so far"
    )
    earlier = (
        f"the earlier query still answers its windows that begin before {begin}, the last of which is {last}, in its "
        f"columns, also with rows that are still to come; the new query answers from the batch after that on"
    )
    return QueryChange(
        kept=(earlier,), begins=(new,), query=plan.query, recorded=change.recorded, start=NewStart(start, beside=True)
    )


def _from(plan: Plan, end: Micros | None, first: int | None) -> str:
    if first is None:
        return ""
    begin, after = plan.windows.bounds(first)
    return (
        f", which has answered all windows to {exact_stamp(end)}; the first window of the new one is {exact_stamp(begin)} to "
        f"{exact_stamp(after)}, and rows before it are late"
    )


_FRONT = "a continuous skyline cannot begin at offsets: use another checkpoint"
_OPEN = "of the earlier query hold rows that have been read"
_DRAIN = "Answer them by a drain of that query, with drain() or `skypane run JOB --drain`"
_TAKING_OVER = (
    "the query of this checkpoint has taken over from an earlier one, which still answers its last windows: start that "
    "query until these are answered, or drain it"
)


def beginning(change: QueryChange, manifest: Manifest | None, plan: Plan | SharedPlan) -> Manifest | None:
    """Return the manifest from which the new query's state is restored: the newest one, or that of a new beginning."""
    if change and manifest is not None and isinstance(plan, SharedPlan):
        return shared_changes.beginning(change, manifest, plan)
    if change.start is None or manifest is None or isinstance(plan, SharedPlan):
        return manifest
    if change.start.beside and change.start.first is not None:
        return _begun_beside(change.recorded, change.start.first, manifest, plan)
    state = begun(plan, change.start.first)
    return replace(manifest, progress=plan.progress.snapshot(state.progress), operator=state.snapshot())


def _begun_beside(recorded: Mapping[str, Any], first: int, manifest: Manifest, plan: Plan) -> Manifest:
    """Return the manifest from which both queries begin; the policy of the new one has learned what the earlier one has."""
    new = WindowState.initial(replace(plan, first=first)).snapshot()
    earlier = {"definition": recorded, "first": first, "progress": manifest.progress, "state": manifest.operator}
    return replace(manifest, operator={**new, RECORD: earlier})


def rewritten(
    change: QueryChange, state: WindowState | SharedState, store: DocumentStore, batch_id: int
) -> WindowState | SharedState:
    """Return the state as that of the new query; its partials are written to files of batch `batch_id`."""
    if isinstance(state, SharedState):
        return shared_changes.rewritten(change, state, store, batch_id)
    if change.start is not None:
        return state
    return converted(change, state, store, batch_id)
