"""Which rows may enter a query: every row is either usable, or rejected with a reason and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.types import BoolArray, ConfigError, IntArray, Micros
from skypane.windows import Windows

LATE = "late"
FUTURE = "future"
REASON = "reason"
"""Name of the column that says why a row was rejected."""

_SECONDS = (-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999, half-open: neither Python nor SQL writes other times, and none overflows the arithmetic."""

_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_FLOATS = (pa.types.is_float64, pa.types.is_float32, pa.types.is_float16)


@dataclass(frozen=True, slots=True)
class PaneCount:
    """How many rows of a pane arrived, and the times that they span; late rows are described so too."""

    pane: int
    rows: int
    oldest: Micros
    newest: Micros

    def merge(self, other: PaneCount) -> PaneCount:
        """Return the count of both; they must be of one pane."""
        return PaneCount(
            self.pane, self.rows + other.rows, min(self.oldest, other.oldest), max(self.newest, other.newest)
        )


@dataclass(frozen=True, slots=True)
class PaneRows:
    """The usable rows of one pane in one batch of rows."""

    count: PaneCount
    rows: pa.Table

    @property
    def pane(self) -> int:
        return self.count.pane


@dataclass(frozen=True, slots=True)
class Admitted:
    """What became of the rows of one table."""

    usable: tuple[PaneRows, ...]
    late: tuple[PaneCount, ...]
    rejected: dict[str, int] = field(default_factory=dict)
    late_by_source: dict[str, int] = field(default_factory=dict)
    rejected_rows: pa.Table | None = None

    @property
    def counts(self) -> tuple[PaneCount, ...]:
        """What progress has to know: the panes of every row that has a time worth believing, late ones with them."""
        return (*(part.count for part in self.usable), *self.late)


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules by which rows enter: a time of the years 1 to 9999, criteria that can be compared, an open pane.

    time      the event-time column: a timestamp with or without zone
    required  columns in which neither null nor NaN can be ranked; infinities are ordered and may enter
    source    the column that names a row's source, to count late rows by, or None
    """

    windows: Windows
    time: str
    required: tuple[str, ...]
    source: str | None = None

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError if `schema` lacks a column, or the time column holds no timestamps."""
        for name in (self.time, *self.required, *([self.source] if self.source else [])):
            if schema.get_field_index(name) < 0:
                raise ConfigError(f"unknown column {name!r}; there are {', '.join(schema.names)}")
        kind = schema.field(self.time).type
        if not pa.types.is_timestamp(kind):
            raise ConfigError(f"time column {self.time!r} is of type {kind}; cast it to a timestamp first")

    def split(
        self,
        rows: pa.Table,
        first_open: int | None,
        *,
        limit: Micros | None = None,
        keep_rejected: bool = False,
    ) -> Admitted:
        """Sort rows into panes; reject what is unusable, what is late, and what lies beyond `limit`.

        first_open     rows of older panes are late; None: none is
        limit          rows of panes that start beyond it are rejected as far in the future; None: none is
        keep_rejected  hand the rejected rows back too, with their reason in an added column
        """
        rows = rows.combine_chunks()
        times, null_time, absurd_time = _times(rows.column(self.time))
        panes = self.windows.panes_at(times)
        reasons = Reasons(rows.num_rows)
        reasons.add(f"null {self.time}", null_time)
        reasons.add(f"absurd {self.time}", absurd_time)
        reasons.add_unrankable(rows, self.required)
        if first_open is not None:
            reasons.add(LATE, panes < first_open)
        if limit is not None:
            reasons.add(FUTURE, panes > self.windows.pane_at(limit))
        bad = reasons.any_rejected
        good = None if bad is None else np.flatnonzero(~bad)
        usable = rows if good is None else rows.take(pa.array(good))
        late = reasons.mask(LATE)
        return Admitted(
            usable=tuple(_by_pane(usable, *((panes, times) if good is None else (panes[good], times[good])))),
            late=() if late is None else tuple(_counts(panes[late], times[late])),
            rejected=reasons.counts(),
            late_by_source=self._sources(rows, late),
            rejected_rows=reasons.rows(rows) if keep_rejected else None,
        )

    def _sources(self, rows: pa.Table, late: BoolArray | None) -> dict[str, int]:
        if late is None or self.source is None:
            return {}
        counts = pc.value_counts(rows.column(self.source).filter(pa.array(late)))
        return {str(entry["values"]): entry["counts"] for entry in counts.to_pylist()}


def rankable(rows: pa.Table, required: tuple[str, ...]) -> tuple[pa.Table, dict[str, int]]:
    """Return the rows whose `required` columns are neither null nor NaN, and how many of the others there are of which."""
    rows = rows.combine_chunks()
    reasons = Reasons(rows.num_rows)
    reasons.add_unrankable(rows, required)
    bad = reasons.any_rejected
    return (rows if bad is None else rows.take(pa.array(np.flatnonzero(~bad)))), reasons.counts()


class Reasons:
    """Why rows may not enter: one reason per row at most, the first that applies."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._names: list[str] = []
        self._codes: NDArray[np.uint16] | None = None

    def add(self, name: str, where: BoolArray | None) -> None:
        if where is None or not where.any():
            return
        if self._codes is None:
            self._codes = np.zeros(self._rows, np.uint16)
        self._names.append(name)
        self._codes[where & (self._codes == 0)] = len(self._names)

    def add_unrankable(self, rows: pa.Table, required: tuple[str, ...]) -> None:
        for name in required:
            column = rows.column(name)
            if column.null_count:
                self.add(f"null {name}", _null(column))
            if any(is_float(column.type) for is_float in _FLOATS):
                self.add(f"NaN {name}", _nan(column))

    @property
    def any_rejected(self) -> BoolArray | None:
        return None if self._codes is None else self._codes > 0

    def mask(self, name: str) -> BoolArray | None:
        if self._codes is None or name not in self._names:
            return None
        where: BoolArray = self._codes == self._names.index(name) + 1
        return where

    def counts(self) -> dict[str, int]:
        if self._codes is None:
            return {}
        counts = np.bincount(self._codes, minlength=len(self._names) + 1)
        return {name: int(n) for name, n in zip(self._names, counts[1:], strict=True) if n}

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rejected rows with their reason."""
        codes = np.zeros(self._rows, np.uint16) if self._codes is None else self._codes
        where = np.flatnonzero(codes)
        names = pa.array(self._names, pa.string()).take(pa.array(codes[where] - np.uint16(1)))
        return rows.take(pa.array(where)).append_column(REASON, names)


def _times(column: pa.ChunkedArray) -> tuple[IntArray, BoolArray | None, BoolArray | None]:
    """Return times in microseconds, where they are null, and where they are out of range (both are 0 there)."""
    nulls = _null(column) if column.null_count else None
    ticks: IntArray = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    per_second = _TICKS_PER_SECOND[column.type.unit]
    earliest, latest = (second * per_second for second in _SECONDS)
    absurd = None
    if len(ticks) and (ticks.min() < earliest or ticks.max() >= latest):
        absurd = (ticks < earliest) | (ticks >= latest)
        ticks = np.where(absurd, 0, ticks)
    micros = ticks * (1_000_000 // per_second) if per_second <= 1_000_000 else ticks // (per_second // 1_000_000)
    return micros, nulls, absurd


def _null(column: pa.ChunkedArray) -> BoolArray:
    where: BoolArray = pc.is_null(column).to_numpy()
    return where


def _nan(column: pa.ChunkedArray) -> BoolArray | None:
    values = column.to_numpy() if not column.null_count else pc.fill_null(column, 0.0).to_numpy()
    where: BoolArray = np.isnan(values)
    return where


def _by_pane(rows: pa.Table, panes: IntArray, times: IntArray) -> Iterator[PaneRows]:
    order = _order(panes)
    if order is not None:
        rows, panes, times = rows.take(pa.array(order)), panes[order], times[order]
    at = 0
    for count in _runs(panes, times):
        yield PaneRows(count, rows.slice(at, count.rows))
        at += count.rows


def _counts(panes: IntArray, times: IntArray) -> Iterator[PaneCount]:
    order = _order(panes)
    return _runs(panes, times) if order is None else _runs(panes[order], times[order])


def _runs(panes: IntArray, times: IntArray) -> Iterator[PaneCount]:
    """Yield the count of each run of equal panes; panes must be in order."""
    if not len(panes):
        return
    starts = np.concatenate(([0], np.flatnonzero(np.diff(panes)) + 1))
    sizes = np.diff(np.append(starts, len(panes)))
    oldest, newest = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
    columns = (panes[starts], sizes, oldest, newest)
    yield from (PaneCount(*run) for run in zip(*(column.tolist() for column in columns), strict=True))


def _order(panes: IntArray) -> IntArray | None:
    """Return a stable order by pane, or None where the rows are in it already."""
    if not (np.diff(panes) < 0).any():
        return None
    low = panes.min()
    # NumPy sorts 16-bit integers by radix, five times as fast as 64-bit ones.
    keys = (panes - low).astype(np.uint16) if panes.max() - low < 1 << 16 else panes
    order: IntArray = np.argsort(keys, kind="stable")
    return order
