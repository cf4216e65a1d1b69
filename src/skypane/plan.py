"""Frozen description of a windowed query, validated once; the local and Spark runtimes run it, in batch and stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, get_args

import pyarrow as pa

from skypane.naming import shortened
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.spark_having import SparkHaving
from skypane.operators.amendments import AmendRule
from skypane.operators.early_answers import EarlyRule
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.fronts import ContinuousSkyline, update_schema
from skypane.operators.query import Query
from skypane.operators.stay_columns import STAYS, WINDOWS, AnswerForm
from skypane.operators.window_query import WindowQuery
from skypane.progress import ProgressPolicy, ProgressState
from skypane.progress.default_policy import DEFAULT
from skypane.types import ConfigError, Length, Micros
from skypane.windows import Windows


@dataclass(frozen=True)
class Plan:
    """A query, its windows, the time column, and the policy that decides when a pane is complete.

    time      event-time column, a timestamp
    progress  progress policy of a stream; a batch query has all rows before it answers and ignores it and `source`
    source    column with the source of each row, by which late rows are counted; or None
    amend     how long answered windows can be amended by late rows; None: no window is answered again after its end
    early     event time between two answers of open windows; None: no window is answered before its end
    first     the first window that the plan answers; None: any
    stop      the first of the windows that another plan answers, after `first`; None: this one answers all from `first` on
    computed  columns of the rows that stand for expressions in the query; answers that are rows leave them out
    answers   "windows": the rows of each window; "stays": each row once for an unbroken run of windows (operators/stays.py)
    having    a condition that Spark evaluates on the answers before they reach their sink; None: the query has all conditions
    """

    query: Query
    windows: Windows
    time: str
    progress: ProgressPolicy = DEFAULT
    source: str | None = None
    amend: AmendRule | None = None
    early: Micros | None = None
    first: int | None = None
    stop: int | None = None
    computed: tuple[str, ...] = ()
    answers: AnswerForm = WINDOWS
    having: SparkHaving | None = None

    @property
    def stays(self) -> bool:
        """Whether answers are written as stays."""
        return self.answers == STAYS

    @property
    def early_rule(self) -> EarlyRule | None:
        """How often open windows are answered; None: not at all."""
        return None if self.early is None else EarlyRule(self.early, self._changes)

    @property
    def _changes(self) -> bool:
        return self.amend is not None and self.amend.changes

    @property
    def queries(self) -> tuple[Query, ...]:
        """The query, as the only one."""
        return (self.query,)

    @cached_property
    def gate(self) -> EntryRules:
        begin = None if self.first is None else self.windows.bounds(self.first)[0]
        rules = EntryRules(self.windows, self.time, tuple(self.query.required), self.source)
        return replace(rules, begin=begin, end=self.end)

    @property
    def end(self) -> Micros | None:
        """The end of the last window that the plan answers; None if there is no last one."""
        return None if self.stop is None else self.windows.bounds(self.stop - 1)[1]

    def rules_after(self, state: ProgressState) -> EntryRules:
        """Return the rules by which the rows of the batch after this state of the progress policy enter."""
        return replace(self.gate.after(state.punctuation), clocks=self.progress.clock_rules(state))

    def validate(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers; raise ConfigError if the query cannot run on rows of `schema`."""
        self.gate.validate(schema)
        if self.source is None and (self.progress.needs_source or self.progress.judges_clocks):
            name = type(self.progress).__name__
            needed = (
                "the newest time of each source" if self.progress.needs_source else "the sources, to judge their clocks"
            )
            raise ConfigError(f"{name} needs {needed}: name the column with the source, source=")
        if self.progress.amend_budget is not None and self.amend is None:
            raise ConfigError(
                f"{type(self.progress).__name__}(max_amended={self.progress.amend_budget}) is a budget of windows that late "
                "rows amend, and this job amends none: it needs late=Amend(...), or max_drop, a budget of rows, instead"
            )
        self._check_form()
        self.query.validate(schema)
        answers = self.output_schema(schema)
        self._check_having(schema, answers)
        return answers

    def _check_having(self, schema: pa.Schema, answers: pa.Schema) -> None:
        """Raise ConfigError if the condition on the answers reads a column in which the same row has several values."""
        if self.having is None:
            return
        read = {*self.having.reads} - {*self.window_query(schema).comparable_columns(answers)}
        if read:
            why = (
                'with answers="stays" a row stands for windows with other bounds, too: write answers="windows"'
                if self.stays
                else "the versions of a window have other values in it: filter the output where it is read"
            )
            raise ConfigError(f"having={shortened(self.having.text)!r} reads {', '.join(sorted(read))}, and {why}")

    def _check_form(self) -> None:
        """Raise ConfigError if answers cannot have the form."""
        if self.answers not in get_args(AnswerForm):
            raise ConfigError(f'answers must be "windows" or "stays", got {self.answers!r}')
        for name, given in (("late=Amend(...)", self.amend), ("early", self.early)):
            if self.stays and given is not None:
                raise ConfigError(
                    f'answers="stays" writes windows that are answered once, and {name} answers them again, one by one: '
                    f"leave one of them out"
                )

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers for rows of `schema`; ConfigError if it would be invalid."""
        return self.window_query(schema).output_schema(schema)

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of `schema` that the plan reads, in the order of the schema."""
        read = {self.time, self.source, *self.query.required, *self.query.reads(schema)}
        return tuple(name for name in schema.names if name in read)

    def window_query(self, schema: pa.Schema) -> WindowQuery:
        zone, early = schema.field(self.time).type.tz, self.early is not None
        versions = early or self.amend is not None, self._changes, early
        return WindowQuery(self.query, self.windows, zone, *versions, hidden(self.query, self.computed), self.stays)

    @property
    def windows_in_words(self) -> str:
        """The windows and their time column, in words."""
        return f"{Length(self.windows.length).words} of {self.time}, every {Length(self.windows.slide).words}"

    @property
    def in_words(self) -> list[tuple[str, str]]:
        """The query and its windows, in words."""
        return [("query", str(self.query)), ("windows", self.windows_in_words), *self.answers_in_words]

    @property
    def answers_in_words(self) -> list[tuple[str, str]]:
        """How often open windows are answered, and whether answers are stays, in words; nothing by default."""
        early = [] if self.early is None else [("early answers", f"every {Length(self.early).words} of {self.time}")]
        return [*early, *([("answers", "stays: each row once for a run of windows")] if self.stays else [])]

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two plans if and only if one may resume the other's checkpoint."""
        # Changes among whole versions, or after them, could not be added up.
        changes = {"answers": "changes"} if self._changes else {}
        return {
            **changes,
            "query": self.query.describe() | ({} if self.having is None else self.having.describe()),
            "window": {
                "length": self.windows.length,
                "slide": self.windows.slide,
                "offset": self.windows.offset,
            },
            "time": self.time,
            "source": self.source,
            "progress": self.progress.describe(),
        }

    @property
    def rules(self) -> dict[str, Any]:
        """The rest from which answers follow, which may change, as a JSON value: see recorded_plan.py."""
        amend = None if self.amend is None else asdict(self.amend)
        rules = {"amend": amend, "early": self.early, "answers": self.answers, "computed": list(self.computed)}
        return {"progress": self.progress.describe(), "rules": rules}

    def definition(self, schema: pa.Schema) -> dict[str, Any]:
        """Return what identifies the query over rows of `schema` in a checkpoint: describe(), and the columns.

        It has only the kind of a policy, whose numbers may change.
        """
        return definition_of(self.describe(), schema)


@dataclass(frozen=True)
class ContinuousPlan(Plan):
    """A continuous skyline: rows are buffered by pane, and the front takes the rows of each pane that closes.

    The panes are tumbling windows. Time advances from pane to pane: updates are emitted up to the end of the last
    closed pane.
    """

    query: ContinuousSkyline

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return update_schema(self.query, schema)

    @property
    def windows_in_words(self) -> str:
        """The windows and their time column, in words."""
        every = Length(self.windows.length).words
        return f"the last {Length(self.query.window).words} of {self.time} at any time, updated every {every}"


def hidden(query: Query, computed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the computed columns that answers leave out: all, except of an aggregate, whose answers name each column."""
    return () if isinstance(query, Aggregate) else computed


def definition_of(described: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Return what identifies the described queries over rows of `schema`, see Plan.definition()."""
    progress = described["progress"]
    if "policy" in progress:
        progress = {"policy": progress["policy"]}
    columns = {field.name: str(field.type) for field in schema}
    return {**described, "progress": progress, "columns": columns, "column order": schema.names}
