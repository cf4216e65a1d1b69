"""Changes of several queries over one stream: each query continues, begins or ends by itself.

A query that continues is treated as a single one. A query that is added begins with the first window whose rows are all
still to come, and a query that is removed must have answered all rows that it has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from skypane.operators.changes.comparison import OpenWindows, QueryChange
from skypane.operators.changes.shared_comparison import QUERIES, ReadSoFar, SharedPart, compare_several
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.changed_state import SHOWN, begun, converted, opened
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.engine.shared_program import SharedState
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.shared_plan import SharedPlan
from skypane.types import CheckpointError
from skypane.windows import Windows


def compared(
    recorded: Mapping[str, Any],
    wanted: Mapping[str, Any],
    manifest: Manifest | None,
    plan: SharedPlan,
    schema: pa.Schema,
) -> QueryChange:
    """Return the change from the queries that are recorded, with the state of a manifest, to those of `plan`.

    Raises CheckpointError if the state cannot be read.
    """
    before = {name: _plan_before(name, recorded, plan) for name in recorded[QUERIES]}
    open_windows, read = _state_before(before, manifest, progress=recorded["progress"] == wanted["progress"])
    columns = pa.schema([(name, pa.null()) for name in recorded["column order"]])
    parts = {
        name: SharedPart(
            one.query,
            pa.schema([schema.field(column) for column in one.reads(schema)]),
            one.reads(columns),
            one.windows,
            open_windows.get(name, OpenWindows(one.windows)),
        )
        for name, one in plan.plans.items()
    }
    ended = {name: open_windows[name] for name in before if name not in plan.plans}
    change = replace(compare_several(recorded, wanted, parts, ended, read), schema=schema)
    shown = [f"query {name!r}: {SHOWN}" for name in change.queries if _shown(name, manifest)]
    return replace(change, refused=(*change.refused, *shown))


def _shown(name: str, manifest: Manifest | None) -> bool:
    """Return whether open windows of a query have early answers as changes."""
    saved = {} if manifest is None else manifest.operator[QUERIES].get(name, {})
    return bool(saved.get("early", {}).get("shown"))


def _state_before(
    plans: Mapping[str, Plan], manifest: Manifest | None, *, progress: bool
) -> tuple[dict[str, OpenWindows], ReadSoFar]:
    """Return the open windows of each query in a manifest, and what they have read.

    progress   whether the progress can be read, because the policy is of the same kind
    """
    if manifest is None:
        return {name: OpenWindows(one.windows) for name, one in plans.items()}, ReadSoFar()
    try:
        saved = {name: manifest.operator[QUERIES][name] for name in plans}
        if not progress:
            return {name: _opened(one.windows, saved[name]) for name, one in plans.items()}, ReadSoFar()
        states = {name: WindowState.restored(one, saved[name]["progress"], saved[name]) for name, one in plans.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the queries in the checkpoint cannot be read: {error!r}") from error
    open_windows = {name: opened(one, states[name]) for name, one in plans.items()}
    return open_windows, ReadSoFar.of((state.progress, open_windows[name]) for name, state in states.items())


def _opened(windows: Windows, saved: Mapping[str, Any]) -> OpenWindows:
    """Return the open windows of a query whose progress is unknown."""
    return OpenWindows(windows, frozenset(map(int, saved["panes"])), next_window=saved["next_window"])


def _plan_before(name: str, recorded: Mapping[str, Any], plan: SharedPlan) -> Plan:
    """Return a plan with the windows of a query that is recorded: that of a query of today, whichever it is, otherwise."""
    window = recorded[QUERIES][name]["window"]
    today = plan.plans.get(name) or next(iter(plan.plans.values()))
    return replace(today, windows=Windows(window["length"], window["slide"], window["offset"]))


def beginning(change: QueryChange, manifest: Manifest, plan: SharedPlan) -> Manifest:
    """Return the manifest with the states of the queries from now on: those that are added have read no rows."""
    saved = {name: state for name, state in manifest.operator[QUERIES].items() if name in plan.plans}
    for name, one in change.queries.items():
        if one.start is not None:
            state = begun(plan.plans[name], one.start.first)
            progress = plan.progress.snapshot(state.progress)
            saved[name] = {"progress": progress, **state.snapshot()}
    return replace(manifest, operator={**manifest.operator, QUERIES: saved})


def rewritten(change: QueryChange, state: SharedState, store: DocumentStore, batch_id: int) -> SharedState:
    """Return the states as those of the new queries; partials are written to files of batch `batch_id`."""
    queries = dict(state.queries)
    for name, one in state.queries.items():
        of_query = change.queries.get(name)
        if of_query is not None and of_query.start is None:
            queries[name] = converted(of_query, one, store, batch_id)
    return replace(state, queries=queries)
