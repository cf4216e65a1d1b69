"""Entry rules: every row of a batch is either usable, or rejected with a reason and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.entry.pane_counts import PaneCount, PaneRows, by_pane, by_source, counts_of, late_of
from skypane.operators.entry.reject_reasons import FUTURE, LATE, RejectReasons, is_null
from skypane.operators.entry.rejected import Rejection
from skypane.progress.pane_arrivals import SourceCount
from skypane.types import TICKS_PER_SECOND, BoolArray, ConfigError, IntArray, Micros
from skypane.windows import Windows

_SECONDS = (-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999, half-open: Python and SQL write no other times, and none of these overflows the arithmetic."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The rows of one table, divided into usable and rejected rows."""

    usable: tuple[PaneRows, ...]
    rejection: Rejection
    #: counts of the rows with a valid time by source; empty if no source column is named
    sources: Mapping[str, SourceCount] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[PaneCount, ...]:
        """The panes of all rows with a valid time, including late rows: the input of the progress policy."""
        return (*(part.count for part in self.usable), *self.rejection.late)


@dataclass(frozen=True, slots=True)
class EntryRules:
    """The rules by which rows enter: a time in the years 1 to 9999, criteria that can be compared, an open pane.

    time        the event-time column: a timestamp with or without time zone
    required    columns in which null and NaN are rejected; infinities are ordered and may enter
    source      the column that names a row's source, for counts by source, or None
    first_open  rows of older panes are late; None: no row is late
    limit       rows of panes that start after it (microseconds) are far in the future; None: no row is
    keep        whether to return the rejected rows too, with their reason in an added column
    """

    windows: Windows
    time: str
    required: tuple[str, ...]
    source: str | None = None
    first_open: int | None = None
    limit: Micros | None = None
    keep: bool = False

    def after(self, punctuation: Micros | None) -> EntryRules:
        """Return the rules for a batch that comes after `punctuation`: rows of the panes that it closed are late."""
        return replace(self, first_open=None if punctuation is None else self.windows.first_open(punctuation))

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError if `schema` lacks a column, or the time column holds no timestamps."""
        for name in (self.time, *self.required, *([self.source] if self.source else [])):
            if schema.get_field_index(name) < 0:
                raise ConfigError(f"unknown column {name!r}; there are {', '.join(schema.names)}")
        kind = schema.field(self.time).type
        if not pa.types.is_timestamp(kind):
            raise ConfigError(f"time column {self.time!r} is of type {kind}; cast it to a timestamp first")

    def panes_of(self, rows: pa.Table) -> IntArray:
        """Return the pane of each row; rows with invalid times get the pane of the epoch."""
        return self.windows.panes_at(_times(rows.combine_chunks().column(self.time))[0])

    def split(self, rows: pa.Table) -> Entry:
        """Sort rows into panes; reject unusable rows, late rows, and rows beyond the limit."""
        rows = rows.combine_chunks()
        times, null_time, absurd_time = _times(rows.column(self.time))
        panes = self.windows.panes_at(times)
        reasons = RejectReasons(rows.num_rows)
        reasons.add(f"null {self.time}", null_time)
        reasons.add(f"absurd {self.time}", absurd_time)
        reasons.add_unrankable(rows, self.required)
        if self.first_open is not None:
            reasons.add(LATE, panes < self.first_open)
        if self.limit is not None:
            reasons.add(FUTURE, panes > self.windows.pane_at(self.limit))
        bad = reasons.any_rejected
        good = None if bad is None else np.flatnonzero(~bad)
        usable = rows if good is None else rows.take(pa.array(good))
        late = reasons.mask(LATE)
        sources = {} if self.source is None else by_source(rows.column(self.source), times, bad, late)
        return Entry(
            usable=tuple(by_pane(usable, *((panes, times) if good is None else (panes[good], times[good])))),
            rejection=Rejection()
            if good is None
            else Rejection(
                reasons=reasons.counts(),
                late=() if late is None else tuple(counts_of(panes[late], times[late])),
                by_source=late_of(sources),
                rows=(reasons.rejected(rows),) if self.keep else (),
            ),
            sources=sources,
        )


def times_of(column: pa.ChunkedArray) -> IntArray:
    """Return the event times of rows that have entered, in microseconds."""
    return _times(column)[0]


def _times(column: pa.ChunkedArray) -> tuple[IntArray, BoolArray | None, BoolArray | None]:
    """Return times in microseconds, and the masks of nulls and of times out of range (the time of both is 0)."""
    nulls = is_null(column) if column.null_count else None
    ticks: IntArray = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    per_second = TICKS_PER_SECOND[column.type.unit]
    earliest, latest = (second * per_second for second in _SECONDS)
    absurd = None
    if len(ticks) and (ticks.min() < earliest or ticks.max() >= latest):
        absurd = (ticks < earliest) | (ticks >= latest)
        ticks = np.where(absurd, 0, ticks)
    micros = ticks * (1_000_000 // per_second) if per_second <= 1_000_000 else ticks // (per_second // 1_000_000)
    return micros, nulls, absurd
