"""Entry rules: every row of a batch is either usable, or rejected with a reason and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.entry.clocks_off import ClocksOff
from skypane.operators.entry.pane_counts import PaneCount, PaneRows, by_pane, by_source, counts_of, late_of
from skypane.operators.entry.raw_text import own
from skypane.operators.entry.reject_reasons import AHEAD, BEHIND, FUTURE, LATE, RejectReasons, is_null
from skypane.operators.entry.rejected import Rejection
from skypane.progress.clock_offsets import ClockRules
from skypane.progress.pane_arrivals import SourceCount
from skypane.types import TICKS_PER_SECOND, BoolArray, ConfigError, IntArray, Micros
from skypane.windows import Windows

_SECONDS = (-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999, half-open: Python and SQL write no other times, and none of these overflows the arithmetic."""


def _none() -> IntArray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Entry:
    """The rows of one table, divided into usable and rejected rows."""

    usable: tuple[PaneRows, ...]
    rejection: Rejection
    #: counts of the rows with a valid time by source; empty if no source column is named
    sources: Mapping[str, SourceCount] = field(default_factory=dict)
    #: newest times by the clocks of the sources whose clocks are off; quarantined rows are included
    shown: Mapping[str, Micros] = field(default_factory=dict)
    #: pane and time of each row of `counts` in their order, and which rows of the table these are; None: all
    panes: IntArray = field(default_factory=_none)
    times: IntArray = field(default_factory=_none)
    counted: BoolArray | None = None

    @property
    def counts(self) -> tuple[PaneCount, ...]:
        """The panes of all rows with a valid time, including late rows: the input of the progress policy."""
        return (*(part.count for part in self.usable), *self.rejection.late, *self.rejection.elsewhere)


@dataclass(frozen=True, slots=True)
class EntryRules:
    """The rules by which rows enter: a time in the years 1 to 9999, criteria that can be compared, an open pane.

    time        the event-time column: a timestamp with or without time zone
    required    columns in which null and NaN are rejected; infinities are ordered and may enter
    source      the column that names a row's source, for counts by source, or None
    first_open  rows of older panes are late; None: no row is late
    clocks      the treatment of rows of sources whose clocks are off; None: nothing. All else is judged by corrected
                times, which usable and rejected rows have from here on
    amends_from rows of closed panes from this one on enter all the same, because they amend answers; None: none do
    limit       rows of panes that start after it (microseconds) are far in the future; None: no row is
    keep        whether to return the rejected rows too, with their reason in an added column
    begin, end  rows with a time before `begin`, or from `end` on, are those of another query: they neither enter nor
                are rejected, and are counted apart (microseconds; None: no bound)
    """

    windows: Windows
    time: str
    required: tuple[str, ...]
    source: str | None = None
    first_open: int | None = None
    clocks: ClockRules | None = None
    amends_from: int | None = None
    limit: Micros | None = None
    keep: bool = False
    begin: Micros | None = None
    end: Micros | None = None

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
        rows, off, shown = self._aligned(rows)
        times, panes, reasons, elsewhere = self._judged(rows, off)
        bad = reasons.any_rejected
        out = bad if elsewhere is None else elsewhere if bad is None else bad | elsewhere
        good = None if out is None else np.flatnonzero(~out)
        entering = own(rows)
        usable = entering if good is None else entering.take(pa.array(good))
        late = reasons.mask(LATE)
        counted = None if bad is None else ~bad if late is None else ~bad | late
        sources = {} if self.source is None else by_source(rows.column(self.source), times, counted, late)
        return Entry(
            usable=tuple(by_pane(usable, *((panes, times) if good is None else (panes[good], times[good])))),
            rejection=Rejection()
            if good is None
            else Rejection(
                reasons=reasons.counts(),
                late=() if late is None else tuple(counts_of(panes[late], times[late])),
                by_source=late_of(sources),
                rows=(reasons.rejected(rows),) if self.keep and bad is not None else (),
                elsewhere=() if elsewhere is None else tuple(counts_of(panes[elsewhere], times[elsewhere])),
            ),
            sources=self._as_late(sources, rows, panes, times, counted),
            shown=shown,
            panes=panes if counted is None else panes[counted],
            times=times if counted is None else times[counted],
            counted=counted,
        )

    def reasons(self, rows: pa.Table) -> RejectReasons:
        """Return the reasons for which rows may not enter."""
        rows, off, _ = self._aligned(rows.combine_chunks())
        return self._judged(rows, off)[2]

    def _aligned(self, rows: pa.Table) -> tuple[pa.Table, ClocksOff | None, Mapping[str, Micros]]:
        """Return the rows, with corrected times if clocks are aligned, the clocks that are off, and what these showed."""
        if self.clocks is None or self.source is None:
            return rows, None, {}
        off = ClocksOff.of(rows.column(self.source), self.clocks)
        if off is None:
            return rows, None, {}
        times, nulls, absurd = _times(rows.column(self.time))
        invalid = nulls if absurd is None else absurd if nulls is None else nulls | absurd
        shown = off.shown(times, invalid)
        return off.corrected(rows, self.time) if self.clocks.align else rows, off, shown

    def _judged(
        self, rows: pa.Table, off: ClocksOff | None
    ) -> tuple[IntArray, IntArray, RejectReasons, BoolArray | None]:
        """Return the time and the pane of each row, the reasons for which rows may not enter, and those of elsewhere."""
        times, null_time, absurd_time = _times(rows.column(self.time))
        panes = self.windows.panes_at(times)
        reasons = RejectReasons(rows.num_rows)
        reasons.add(f"null {self.time}", null_time)
        reasons.add(f"absurd {self.time}", absurd_time)
        reasons.add_unrankable(rows, self.required)
        if off is not None and self.clocks is not None and not self.clocks.align:
            reasons.add(AHEAD, off.offsets > 0)
            reasons.add(BEHIND, off.offsets < 0)
        if self.first_open is not None:
            reasons.add(LATE, panes < (self.first_open if self.amends_from is None else self.amends_from))
        if self.limit is not None:
            reasons.add(FUTURE, panes > self.windows.pane_at(self.limit))
        elsewhere = self._elsewhere(times, null_time, absurd_time)
        if elsewhere is not None:
            reasons.withdraw(elsewhere)
        return times, panes, reasons, elsewhere

    def _elsewhere(self, times: IntArray, *invalid: BoolArray | None) -> BoolArray | None:
        """Return the mask of the rows of other queries; None if there are none. Rows without a valid time are of all."""
        if self.begin is None and self.end is None:
            return None
        where: BoolArray = np.zeros(len(times), np.bool_)
        if self.begin is not None:
            where |= times < self.begin
        if self.end is not None:
            where |= times >= self.end
        for mask in invalid:
            if mask is not None:
                where &= ~mask
        return where if where.any() else None

    def _as_late(
        self,
        sources: Mapping[str, SourceCount],
        rows: pa.Table,
        panes: IntArray,
        times: IntArray,
        counted: BoolArray | None,
    ) -> Mapping[str, SourceCount]:
        """Return the counts for the progress policy, for which a row that amends is as late as one that is dropped."""
        if self.source is None or self.first_open is None or self.amends_from is None:
            return sources
        closed = panes < self.first_open
        if counted is not None:
            closed &= counted
        return by_source(rows.column(self.source), times, counted, closed)


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
