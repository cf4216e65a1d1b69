"""Several queries over one stream, compared with those that a checkpoint records: each by itself, under its name.

A query that is there before and after is compared as a single one is. A query that is added begins with the first window
whose rows are all still to come. A query can be removed when all rows that it has read are in its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from skypane.operators.changes.comparison import NewStart, OpenWindows, QueryChange, compare, differences
from skypane.operators.changes.first_windows import first_from
from skypane.operators.query import Query
from skypane.progress.progress_policy import ProgressState
from skypane.types import Micros
from skypane.windows import Windows
from skypane.wording import counted, stamp

QUERIES = "queries"
"""Key of the definition of several queries."""
_COLUMNS, _ORDER = "columns", "column order"


@dataclass(frozen=True)
class SharedPart:
    """One of several queries from now on.

    schema    the columns that it reads
    columns   names of the recorded columns that it reads
    windows   its windows
    opened    its open windows
    """

    query: Query
    schema: pa.Schema
    columns: tuple[str, ...]
    windows: Windows
    opened: OpenWindows


@dataclass(frozen=True)
class ReadSoFar:
    """The extent of the rows that all queries together have read.

    end    the time after all rows that were accepted; None if there was none
    held   rows that are held, because they are far ahead of that time
    """

    end: Micros | None = None
    held: int = 0

    @classmethod
    def of(cls, queries: Iterable[tuple[ProgressState, OpenWindows]]) -> Self:
        """Return what queries have read that have this progress and these open windows."""
        ends: list[Micros] = []
        held = 0
        for progress, opened in queries:
            ends += _ends(progress, opened)
            held = max(held, progress.held.rows)
        return cls(max(ends, default=None), held)


def _ends(progress: ProgressState, opened: OpenWindows) -> list[Micros]:
    """Return times after which a query has accepted no row; the newest time need not have followed all of them."""
    windows, newest = opened.windows, progress.newest
    if newest is None:
        return []
    beyond = [pane for pane in opened.panes - opened.held if windows.pane_start(pane) > newest]
    ends = [newest + 1, *(windows.pane_end(pane) for pane in beyond)]
    return ends if progress.punctuation is None else [*ends, progress.punctuation]


def compare_several(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    parts: Mapping[str, SharedPart],
    ended: Mapping[str, OpenWindows],
    read: ReadSoFar,
) -> QueryChange:
    """Return the change from the definition `before` to `after`, which is that of the queries `parts`, by name.

    ended   the open windows of the queries that are in `before` alone
    """
    refused = [
        f"{line}: rows read so far were assigned to panes and sources by the earlier value"
        for key in sorted({*before, *after} - {QUERIES, _COLUMNS, _ORDER})
        for line in differences(key, before.get(key), after.get(key))
    ]
    changes = {name: _of(name, part, before, after, read) for name, part in parts.items()}
    changes |= {name: _removed(opened) for name, opened in ended.items()}
    named = [(name, change) for name, change in changes.items() if change]
    return QueryChange(
        kept=tuple(_named(named, "kept")),
        begins=tuple(_named(named, "begins")),
        refused=(*refused, *_named(named, "refused")),
        recorded=before,
        queries={name: change for name, change in named if name in parts},
    )


def _named(changes: list[tuple[str, QueryChange]], effect: str) -> Iterator[str]:
    for name, change in changes:
        yield from (f"query {name!r}: {text}" for text in getattr(change, effect))


def _of(
    name: str, part: SharedPart, before: Mapping[str, Any], after: Mapping[str, Any], read: ReadSoFar
) -> QueryChange:
    if name not in before[QUERIES]:
        return _added(part, read)
    alone = _alone(before, name, part.columns), _alone(after, name, part.schema.names)
    return QueryChange() if alone[0] == alone[1] else compare(*alone, part.query, part.schema, part.opened)


def _alone(definition: Mapping[str, Any], name: str, columns: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Return the definition of one query, with the columns that it reads; what all queries share is left out."""
    return {
        **definition[QUERIES][name],
        _COLUMNS: {column: definition[_COLUMNS][column] for column in columns},
        _ORDER: [*columns],
    }


def _added(part: SharedPart, read: ReadSoFar) -> QueryChange:
    """Return the beginning of a query that has read no rows."""
    added = QueryChange(query=part.query, schema=part.schema, recorded={"query": None})
    if read.end is None:
        return replace(added, kept=("is added",), start=NewStart(None))
    windows = part.windows
    first = first_from(windows, read.end)
    begin, end = windows.bounds(first)
    held = f"; {counted(read.held, 'rows')} held far ahead of the stream are not in its windows" if read.held else ""
    text = f"is added, with the window {stamp(begin)} to {stamp(end)} as its first; rows before it are late{held}"
    return replace(added, begins=(text,), start=NewStart(first))


def _removed(opened: OpenWindows) -> QueryChange:
    """Return the end of a query: it must have answered all rows that it has read."""
    recorded = {"query": None}
    windows, ranges = opened.windows, opened.earlier
    if not ranges:
        return QueryChange(kept=("is removed; all its windows are answered",), recorded=recorded)
    begin, end = windows.bounds(ranges[0][0])[0], windows.bounds(ranges[-1][1] - 1)[1]
    number = sum(last - first for first, last in ranges)
    text = (
        f"is removed, and {counted(number, 'windows')} from {stamp(begin)} to {stamp(end)}, which hold rows read so far, "
        f"would not be answered: answer them first by a drain with this query, drain() or `skypane run JOB --drain`"
    )
    return QueryChange(refused=(text,), recorded=recorded)
