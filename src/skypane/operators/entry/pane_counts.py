"""Counts of rows by pane, with the times that they span; rows sorted into panes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.progress.pane_arrivals import SourceCount
from skypane.types import BoolArray, IntArray, Micros


@dataclass(frozen=True, slots=True)
class PaneCount:
    """The number of rows of a pane that arrived, and the times that they span; also used for late rows."""

    pane: int
    rows: int
    oldest: Micros
    newest: Micros

    def merge(self, other: PaneCount) -> PaneCount:
        """Return the count of both; they must be of the same pane."""
        return PaneCount(
            self.pane, self.rows + other.rows, min(self.oldest, other.oldest), max(self.newest, other.newest)
        )


def merged_counts(counts: Iterable[PaneCount]) -> list[PaneCount]:
    """Return one count for each pane, panes in order."""
    by_pane: dict[int, PaneCount] = {}
    for count in counts:
        known = by_pane.get(count.pane)
        by_pane[count.pane] = count if known is None else known.merge(count)
    return [by_pane[pane] for pane in sorted(by_pane)]


@dataclass(frozen=True, slots=True)
class PaneRows:
    """The usable rows of one pane in one batch of rows."""

    count: PaneCount
    rows: pa.Table

    @property
    def pane(self) -> int:
        return self.count.pane


def by_pane(rows: pa.Table, panes: IntArray, times: IntArray) -> Iterator[PaneRows]:
    """Yield the rows of each pane, panes in order; rows of one pane keep their order."""
    order = _order(panes)
    if order is not None:
        rows, panes, times = pc.take(rows, pa.array(order), boundscheck=False), panes[order], times[order]
    at = 0
    for count in _runs(panes, times):
        yield PaneRows(count, rows.slice(at, count.rows))
        at += count.rows


def counts_of(panes: IntArray, times: IntArray) -> Iterator[PaneCount]:
    """Yield the count of each pane, panes in order."""
    order = _order(panes)
    return _runs(panes, times) if order is None else _runs(panes[order], times[order])


def by_source(
    source: pa.ChunkedArray, times: IntArray, counted: BoolArray | None, late: BoolArray | None
) -> dict[str, SourceCount]:
    """Return the counts by source of the `counted` rows, None: of all; rows without a source count as of "None"."""
    where = np.ones(len(times), bool) if counted is None else counted
    encoded = pc.dictionary_encode(source, null_encoding="encode").combine_chunks()
    codes = encoded.indices.to_numpy()[where]
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    rows = np.bincount(codes, minlength=len(names))
    late_counts = np.zeros_like(rows) if late is None else np.bincount(codes[late[where]], minlength=len(names))
    newest = np.full(len(names), np.iinfo(np.int64).min)
    np.maximum.at(newest, codes, times[where])
    counts = zip(names, rows.tolist(), late_counts.tolist(), newest.tolist(), strict=True)
    return {name: SourceCount(n, late_count, last) for name, n, late_count, last in counts if n}


def merged_sources(parts: Iterable[Mapping[str, SourceCount]]) -> dict[str, SourceCount]:
    """Return the counts by source of all parts together."""
    merged: dict[str, SourceCount] = {}
    for part in parts:
        for name, count in part.items():
            merged[name] = merged[name].merge(count) if name in merged else count
    return merged


def newest_by(names: IntArray, values: Sequence[str], times: IntArray) -> dict[str, Micros]:
    """Return the newest of `times` by name, given the place of each time's name in `values`."""
    newest = np.full(len(values), np.iinfo(np.int64).min)
    np.maximum.at(newest, names, times)
    return {values[place]: int(newest[place]) for place in np.unique(names).tolist()}


def merged_times(parts: Iterable[Mapping[str, Micros]]) -> dict[str, Micros]:
    """Return the newest time by source of all parts together."""
    merged: dict[str, Micros] = {}
    for part in parts:
        for name, time in part.items():
            merged[name] = max(merged.get(name, time), time)
    return merged


def late_of(sources: Mapping[str, SourceCount]) -> dict[str, int]:
    """Return the number of late rows by source, without sources that have none."""
    return {name: count.late for name, count in sources.items() if count.late}


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
    """Return a stable order by pane, or None if the rows are in that order already."""
    if not (np.diff(panes) < 0).any():
        return None
    low = panes.min()
    # NumPy sorts 16-bit integers by radix, five times as fast as 64-bit ones.
    keys = (panes - low).astype(np.uint16) if panes.max() - low < 1 << 16 else panes
    order: IntArray = np.argsort(keys, kind="stable")
    return order
