"""A query that takes over from another one, while that one still answers the windows that hold rows read before.

    earlier                 [====)   the windows of the earlier query that begin before `begin`, the first window of the
                               [====)    new one that holds no row read before
    new                          [====)  the windows of the new query that begin at `begin` or later
                                   [====)

Rows are read once, and lifted for the queries whose windows hold them: those before `begin` for the earlier one, those
after its last window for the new one, those between for both. Windows of the new query wait until the earlier one has
answered its last window. Then its state is dropped, and the new query continues alone (handover_program.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import pyarrow as pa

from skypane.operators.changes.first_windows import last_before
from skypane.plan import Plan
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.engine.recorded_plan import columns_of, query_plan
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.snapshots import through_json
from skypane.types import CheckpointError, ConfigError, Micros

RECORD: Final = "earlier"
"""Key of the earlier query in the operator's part of a manifest."""


@dataclass(frozen=True)
class Handover:
    """The two queries, and where one takes over from the other.

    definition  the earlier query, as the checkpoint records it
    before      its plan, without a last window
    after       the plan of the new query, without a first window
    first       the first window of the new query
    schema      schema of the rows that the earlier query reads, in its order of columns
    """

    definition: Mapping[str, Any]
    before: Plan
    after: Plan
    first: int
    schema: pa.Schema

    @classmethod
    def of(cls, definition: Mapping[str, Any], first: int, plan: Plan, rows: pa.Schema) -> Self:
        """Return the handover from a recorded query to `plan`, whose first window is `first`.

        rows   schema of all columns that the job's rows have

        Raises ConfigError, with the reason, if the earlier query cannot run beside the new one.
        """
        before = _plan_of(definition, plan)
        read = before.reads(pa.schema([(name, pa.null()) for name in definition["column order"]]))
        schema = columns_of(definition, read, rows)
        before.validate(schema)
        return cls(definition, before, plan, first, schema)

    @classmethod
    def restored(cls, record: Mapping[str, Any], plan: Plan, rows: pa.Schema) -> Self:
        """Return the handover that a manifest records; raise CheckpointError if it cannot continue."""
        try:
            return cls.of(record["definition"], record["first"], plan, rows)
        except (ConfigError, KeyError) as error:
            raise CheckpointError(
                f"the earlier query of this checkpoint has to answer its last windows, and cannot: {error}; restore "
                f"the job as it was until it has"
            ) from error

    @property
    def begin(self) -> Micros:
        """The start of the first window of the new query."""
        return self.after.windows.bounds(self.first)[0]

    @property
    def last(self) -> int:
        """The last window of the earlier query: the last one that begins before the first one of the new query."""
        return last_before(self.before.windows, self.begin)

    @property
    def end(self) -> Micros:
        """The end of the last window of the earlier query."""
        return self.before.windows.bounds(self.last)[1]

    @cached_property
    def earlier(self) -> Plan:
        """The plan of the earlier query, up to its last window."""
        return replace(self.before, stop=self.last + 1)

    @cached_property
    def new(self) -> Plan:
        """The plan of the new query, from its first window on."""
        return replace(self.after, first=self.first)

    @property
    def record(self) -> dict[str, Any]:
        """The recorded query and the first window of the new one, for restored(), as a JSON value."""
        return {"definition": dict(self.definition), "first": self.first}

    def rows(self, new: pa.Schema, rows: pa.Schema) -> pa.Schema:
        """Return the schema of the rows that both queries together read, if the new one reads those of schema `new`."""
        read = {*self.schema.names, *new.names}
        return pa.schema([field for field in rows if field.name in read])

    def answered(self, state: WindowState) -> bool:
        """Return whether the earlier query has answered its last window."""
        return state.progress.punctuation is not None and state.progress.punctuation >= self.end


def _plan_of(definition: Mapping[str, Any], plan: Plan) -> Plan:
    """Return the plan of a recorded query, by the policy of the new one."""
    policy, now = definition["progress"], through_json(plan.definition(pa.schema([]))["progress"])
    if policy != now:
        kinds = [described.get("policy", described) for described in (policy, now)]
        raise ConfigError(f"its policy, {kinds[0]}, is not that of the new query, {kinds[1]}")
    if plan.progress.judges_clocks:
        raise ConfigError("the policy corrects or quarantines clocks, by what one query has seen")
    for name in ("time", "source"):
        if definition[name] != (value := getattr(plan, name)):
            raise ConfigError(f"its {name}, {definition[name]!r}, is not that of the new query, {value!r}")
    if plan.amend is not None:
        raise ConfigError("the new query amends its answers")
    if plan.early is not None:
        raise ConfigError("the new query answers windows early")
    return query_plan(definition, plan, {})


@dataclass(frozen=True, slots=True)
class HandoverState:
    """The states of both queries."""

    handover: Handover
    earlier: WindowState
    new: WindowState

    @property
    def progress(self) -> ProgressState:
        """The progress of the new query; snapshot() has that of the earlier one."""
        return self.new.progress

    @property
    def drained(self) -> bool:
        return self.earlier.drained and self.new.drained

    @property
    def due(self) -> Micros | None:
        """None: a query that hands over does not pause."""
        return None

    @property
    def files(self) -> frozenset[str]:
        return self.earlier.files | self.new.files

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the new query, and beside it all of the earlier one, as a JSON value."""
        policy = self.handover.earlier.progress
        earlier = {"progress": policy.snapshot(self.earlier.progress), "state": self.earlier.snapshot()}
        return {**self.new.snapshot(), RECORD: {**self.handover.record, **earlier}}
