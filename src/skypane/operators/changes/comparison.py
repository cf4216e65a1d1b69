"""The recorded query of a checkpoint compared with a new one: what is kept, what begins later, and what cannot go on.

A definition is a JSON object: "query", "window", "time", "source", "progress", "columns" and "column order", as the
engine records it. A change is kept if the partials of the open panes answer every window of the new query exactly, or
if the windows that they do not answer are stated: those that hold rows read before the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.spark_having import SparkHaving, of_workers
from skypane.operators.aggregates.state_layout import StateLayout
from skypane.operators.changes.aggregate_state import aggregate_of, converted, unknown_functions
from skypane.operators.changes.passed_rows import with_columns
from skypane.operators.changes.window_phases import Phase, holding, phase_of
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.types import ConfigError
from skypane.windows import Windows
from skypane.wording import stamp

_FILTER = ("having", "top", "rank_by")


@dataclass(frozen=True)
class OpenWindows:
    """The open panes of a query that changes, those of them that are held, and the phases that have windows left."""

    windows: Windows
    panes: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    next_window: int | None = None
    phases: tuple[Phase, ...] = ()

    @cached_property
    def earlier(self) -> list[tuple[int, int]]:
        """The ranges of windows that hold rows read so far."""
        return holding(self.windows, self.panes, self.next_window)

    @property
    def first_without(self) -> str:
        """The first window without rows read so far, in words; held panes, which lie far ahead, are left out."""
        ranges = holding(self.windows, self.panes - self.held, self.next_window)
        if not ranges:
            return "the next window"
        begin, end = self.windows.bounds(ranges[-1][1])
        return f"the window {stamp(begin)} to {stamp(end)}"


@dataclass(frozen=True)
class NewStart:
    """The first window of a query that begins without a state; None: no window was answered before.

    beside   whether the earlier query still answers its windows before that one
    """

    first: int | None
    beside: bool = False


@dataclass(frozen=True)
class QueryChange:
    """The differences between two queries, in words, and what becomes of the state.

    kept     differences from the next window on
    begins   differences that begin at a stated window
    refused  differences with which the new query cannot continue, with the reason; if there are any, it does not

    The rest is for the engine:
    query    the new query, over rows of `schema`
    before   the aggregate before, by which partials are read
    phases   the windows that are answered in part
    recorded the definition before
    converts whether the partials of the open panes have to be converted by partial()
    start    the first window of a query that continues from no state
    queries  of several queries: the changes of those that change, by name
    """

    kept: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    query: Query | None = None
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    before: Aggregate | None = None
    phases: tuple[Phase, ...] = ()
    recorded: Mapping[str, Any] = field(default_factory=dict)
    converts: bool = False
    start: NewStart | None = None
    queries: Mapping[str, QueryChange] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether the definitions differ, even if only in what needs no words, such as the order of columns."""
        return bool(self.recorded)

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Each difference, with "kept", "begins" or "refused"."""
        return tuple(
            (word, text)
            for word, texts in (("kept", self.kept), ("begins", self.begins), ("refused", self.refused))
            for text in texts
        )

    def partial(self, partial: pa.Table) -> pa.Table:
        """Return a partial of the query before as one of the new query."""
        if isinstance(self.query, Aggregate):
            if self.before is None:
                return partial
            return converted(partial, self.before, StateLayout.of(self.query, self.schema))
        if isinstance(self.query, TopK):
            return self.query.lift(with_columns(partial, self.schema))
        return with_columns(partial, self.schema) if isinstance(self.query, _PASSING) else partial


_PASSING = (Skyline, TopK, KDominant, TopDelta)
"""Queries whose partials are rows, with all their columns."""


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], query: Query, schema: pa.Schema, opened: OpenWindows
) -> QueryChange:
    """Return the change from the definition `before` to `after`, which is that of `query` over rows of `schema`."""
    notes = _Notes(opened)
    for part in sorted({*before, *after} - {"query", "columns", "column order"}):
        for line in differences(part, before.get(part), after.get(part)):
            notes.refused.append(f"{line}: rows read so far were assigned to panes and sources by the earlier value")
    _columns(before, after, query, notes)
    old, phases = None, opened.phases
    if before["query"] != after["query"]:
        if isinstance(query, Aggregate) and before["query"].get("query") == "aggregate":
            old, phases = _aggregate(before["query"], after["query"], query, schema, notes)
        else:
            _other(before["query"], after["query"], query, notes)
    if isinstance(query, Aggregate) and old is None and not notes.refused:
        old = query  # the columns may have changed, and with them what partials record about rows
    return QueryChange(
        tuple(notes.kept),
        tuple(notes.begins),
        tuple(notes.refused),
        query,
        schema,
        old,
        () if notes.refused else phases,
        before,
        converts=_of_partials(before) != _of_partials(after),
    )


def _of_partials(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return what partials depend on."""
    query = {name: value for name, value in of_workers(definition["query"]).items() if name not in _FILTER}
    return {**definition, "query": query}


class _Notes:
    """Differences as they are found."""

    def __init__(self, opened: OpenWindows) -> None:
        self.opened = opened
        self.kept: list[str] = []
        self.begins: list[str] = []
        self.refused: list[str] = []

    def earlier(self, text: str) -> None:
        """Note a difference that the windows that hold rows read so far do not show."""
        if self.opened.panes:
            self.begins.append(f"{text}; from {self.opened.first_without} on")
        else:
            self.kept.append(text)


def _columns(before: Mapping[str, Any], after: Mapping[str, Any], query: Query, notes: _Notes) -> None:
    there, now = before["columns"], after["columns"]
    order, order_now = before["column order"], after["column order"]
    for name in order:
        if name in now and there[name] != now[name]:
            notes.refused.append(
                f"columns.{name} was {there[name]!r}, is {now[name]!r}: the rows kept have the earlier type; cast it"
            )
    added, dropped = [name for name in order_now if name not in there], [name for name in order if name not in now]
    reordered = [name for name in order if name in now] != [name for name in order_now if name in there]
    if isinstance(query, Aggregate):  # it reads columns by name, and its functions are compared
        read = {*query.reads(pa.schema([(name, pa.null()) for name in order_now]))}
        notes.kept.extend(f"column {name!r} is added to rejected rows" for name in added if name not in read)
        notes.kept.extend(f"column {name!r} is no longer read" for name in dropped)
        return
    if reordered:
        notes.refused.append(
            f"column order was {order!r}, is {order_now!r}: ties are broken column by column; restore the order"
        )
    if (added or dropped) and not isinstance(query, _PASSING):
        notes.refused.extend(f"columns.{name} was {there[name]!r}, is None: {_OWN}" for name in dropped)
        notes.refused.extend(f"columns.{name} was None, is {now[name]!r}: {_OWN}" for name in added)
        return
    for name in added:
        notes.earlier(f"column {name!r} is added: rows read so far have null in it")
    for name in dropped:
        if isinstance(query, TopK):
            notes.earlier(f"column {name!r} is removed: ties among rows read so far are broken with it")
        else:
            notes.kept.append(f"column {name!r} is removed")


_OWN = "what this query keeps of rows is not known here"


def _other(before: Mapping[str, Any], after: Mapping[str, Any], query: Query, notes: _Notes) -> None:
    for line in differences("query", before, after):
        if line.startswith("query.k ") and isinstance(query, TopK) and before.get("query") == "top_k":
            if int(before["k"]) > query.k:
                notes.kept.append(f"k was {before['k']}, is {query.k}")
                continue
            line = f"{line}: the panes hold only {before['k']} rows each"  # noqa: PLW2901
            notes.refused.append(line)
            continue
        notes.refused.append(f"{line}: what the panes hold was chosen by the earlier value")


def _aggregate(
    before: Mapping[str, Any], after: Mapping[str, Any], query: Aggregate, schema: pa.Schema, notes: _Notes
) -> tuple[Aggregate | None, tuple[Phase, ...]]:
    """Note the differences of two aggregates; return the earlier one, and the phases from now on."""
    if before["by"] != after["by"]:
        notes.refused.append(f"query.by was {before['by']!r}, is {after['by']!r}: states are kept for the earlier keys")
        return None, ()
    try:
        old = aggregate_of(before, query)
    except ConfigError as error:
        notes.refused.append(str(error))
        return None, ()
    had = dict(before["functions"])
    fresh = [name for name, value in after["functions"] if had.get(name) != value]
    lost = [name for name in had if name not in dict(query.functions)]
    unknown = unknown_functions(query, old, schema)
    for name in fresh:
        what = f"{name!r} is {'another function' if name in had else 'added'}"
        if name in unknown:
            notes.earlier(f"{what}: null in the windows that hold rows read so far")
        else:
            notes.kept.append(f"{what}: the state of other functions answers it")
    notes.kept.extend(f"{name!r} is removed" for name in lost)
    if before.get("required", []) != after.get("required", []):
        notes.earlier(
            f"required was {before.get('required', [])!r}, is {after.get('required', [])!r}: rows read so far were "
            f"checked by the earlier value"
        )
    if changed := [name for name in _FILTER if before.get(name) != after.get(name)]:
        text = ", ".join(f"{name} was {before.get(name)!r}, is {after.get(name)!r}" for name in changed)
        notes.earlier(text) if query.choice.columns & {*unknown} else notes.kept.append(text)
    kept_names = frozenset(name for name, value in after["functions"] if had.get(name) == value)
    by_spark = SparkHaving.recorded(before), SparkHaving.recorded(after)
    phases = tuple(_phases(query, old, kept_names, schema, notes, by_spark))
    return old, phases


def _phases(
    query: Aggregate,
    old: Aggregate,
    kept: frozenset[str],
    schema: pa.Schema,
    notes: _Notes,
    by_spark: tuple[SparkHaving | None, SparkHaving | None],
) -> Iterator[Phase]:
    """Yield the phases of the windows that hold rows read so far.

    by_spark   the conditions that Spark evaluates, before and from now on; it evaluates one for all windows
    """
    opened = notes.opened
    cuts = sorted(
        {edge for begin, end in opened.earlier for edge in (begin, end)}
        | {edge for phase in opened.phases for edge in (phase.begin, phase.end)}
    )
    for begin, end in pairwise(cuts):
        earlier = phase_of(opened.phases, begin)
        if earlier is None and not any(low <= begin < high for low, high in opened.earlier):
            continue
        unknown_before = () if earlier is None else earlier.unknown
        unknown = unknown_functions(query, old, schema, unknown_before)
        if why := _refused_by_spark(*by_spark, query.choice, {*unknown}):
            notes.refused.append(why)
            return
        choice = _choice(query, old.choice if earlier is None else earlier.choice, {*unknown}, kept)
        if choice is None:
            notes.refused.append(
                "having, top or rank_by use a function that is added, and those before use one that is removed: "
                "remove it in a later change"
            )
            return
        if unknown or choice != query.choice:
            yield Phase(begin, end, unknown, choice)


def _refused_by_spark(
    before: SparkHaving | None, now: SparkHaving | None, choice: AnswerFilter, unknown: Collection[str]
) -> str | None:
    """Return why windows in which functions are unknown could not be filtered; None if they can.

    Workers filter such windows as before if the new filter needs the unknown values. Spark knows no such windows.
    """
    read = sorted({*unknown} & (choice.columns if now is None else {*now.reads}))
    if not read or (before is None and now is None):
        return None
    return (
        f"having, top or rank_by use {', '.join(map(repr, read))}, null in the windows that hold rows read so far, which cannot "
        f"be filtered as before, because Spark evaluates having= for all windows alike: add the function first, and change "
        f"the filter when these windows are answered"
    )


def _choice(
    query: Aggregate, before: AnswerFilter, unknown: Collection[str], kept: frozenset[str]
) -> AnswerFilter | None:
    """Return the filter of the new query if all that it uses is known, else the filter before; None if neither is."""
    if not query.choice.columns & {*unknown}:
        return query.choice
    usable = {*query.by, *(kept - {*unknown})}
    return before if before.columns <= usable else None


def differences(path: str, before: Any, after: Any) -> list[str]:
    """Return a line for each field in which two JSON values differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = sorted({*before, *after})
        return [line for key in keys for line in differences(f"{path}.{key}", before.get(key), after.get(key))]
    return [] if before == after else [f"{path} was {before!r}, is {after!r}"]
