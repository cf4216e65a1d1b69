"""The data of a report, frozen. This module reads the files, so that rendering needs no input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from skypane.metrics import BatchMetrics
from skypane.operators.answer_changes import beyond
from skypane.operators.stay_columns import are_stays, expanded
from skypane.operators.window_query import ACTION, EARLY, EMPTY, REMOVED, VERSION, WINDOW_START
from skypane.reporting.grids import GridMap
from skypane.types import IntArray, Micros

#: the meaning of a skyline, for the report
SKYLINE = "No other row of the window is at least as good as one of these in all criteria and better in one."


@dataclass(frozen=True)
class Criterion:
    """One ranked column, and which end of it is better."""

    column: str
    #: "low" or "high"
    good: str
    unit: str = ""

    @property
    def label(self) -> str:
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.column.replace('_', ' ')}{unit}"


@dataclass(frozen=True, eq=False)
class FrontSizes:
    """Rows of each answer: the window that ends at end[i] has row_counts[i] rows for group[i]."""

    end: IntArray
    group: tuple[str, ...]
    row_counts: IntArray


@dataclass(frozen=True, eq=False)
class Example:
    """One window's answer, and all rows of the window if they are known."""

    start: Micros
    end: Micros
    group: str
    front: pa.Table
    everything: pa.Table | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One run at the time of its report."""

    title: str
    #: the question that the query answers, as a sentence
    question: str
    #: length of a window in microseconds
    window: Micros
    criteria: tuple[Criterion, ...]
    batches: tuple[BatchMetrics, ...]
    #: settings of the run as (name, value) pairs
    settings: tuple[tuple[str, str], ...] = ()
    sizes: FrontSizes | None = None
    #: continuous skyline only: rows on its front over time
    one_front: FrontSizes | None = None
    example: Example | None = None
    grid: GridMap | None = None
    #: stream seconds per wall-clock second, if a recording was replayed
    speedup: float | None = None
    #: the meaning of an answer, as a sentence
    meaning: str = ""
    #: remarks for the reader, one sentence each
    notes: tuple[str, ...] = field(default=())
    #: of a job of several queries: each of them, with its name as the title
    queries: tuple[Snapshot, ...] = ()


def answers(directory: Path) -> pa.Table | None:
    """Return the windows that a file sink has written as parquet, stays expanded, each in its last version, or None."""
    files = sorted(str(p) for p in directory.rglob("*.parquet") if not any(part[0] in "._" for part in p.parts[-2:]))
    if not files:
        return None
    kept = [file for file in files if are_stays(pq.read_schema(file))]
    others = sorted({*files} - {*kept})
    tables = [expanded(_read(kept))] if kept else []
    tables += [_current(_read(others))] if others else []
    return pa.concat_tables(tables, promote_options="default")


def _read(files: Sequence[str]) -> pa.Table:
    """Return the rows of files, in order of time, with the columns of the last one: the first may have others."""
    newest = ds.dataset(files[-1], format="parquet").schema
    return ds.dataset(files, schema=newest, format="parquet").to_table()


def _current(rows: pa.Table) -> pa.Table:
    """Return the last version of each window that has ended, without the columns of versions; `rows` without versions.

    Changes, of an answer that only appends, are added up.
    """
    if EARLY not in rows.column_names:
        return _last_versions(rows)
    early = pc.fill_null(rows[EARLY], fill_value=False)  # rows from before the query answered early have no value
    current = _last_versions(rows.set_column(rows.column_names.index(EARLY), EARLY, early))
    return current.filter(pc.invert(current[EARLY])).drop_columns([EARLY])


def _last_versions(rows: pa.Table) -> pa.Table:
    names = set(rows.column_names)
    if {VERSION, ACTION} <= names:
        goes = pc.fill_null(pc.equal(rows[ACTION], REMOVED), fill_value=False)
        came, gone = (rows.filter(which).drop_columns([VERSION, ACTION]) for which in (pc.invert(goes), goes))
        return came.take(beyond(came, gone))
    if not {VERSION, EMPTY} <= names:
        return rows
    versions = pc.fill_null(rows[VERSION], 0).to_numpy()
    _, window = np.unique(_micros(rows[WINDOW_START]), return_inverse=True)
    newest = np.zeros(window.max(initial=-1) + 1, versions.dtype)
    np.maximum.at(newest, window, versions)
    rows = rows.filter(pa.array(versions == newest[window]))
    rows = rows.filter(pc.invert(pc.fill_null(rows[EMPTY], fill_value=False)))
    return rows.drop_columns([VERSION, EMPTY])


def latest_front(directory: Path, metrics: BatchMetrics) -> pa.Table | None:
    """Return the rows of the last window that a batch answered, from the batch's parquet files, or None."""
    files = sorted(directory.glob(f"part-{metrics.batch_id:012d}-*.parquet"))
    if metrics.latest_window is None or not files:
        return None
    return last_window(ds.dataset([str(file) for file in files], format="parquet").to_table(), metrics)


def last_window(rows: pa.Table, metrics: BatchMetrics) -> pa.Table | None:
    """Return the rows of the last window that a batch answered, among `rows` of windows; None if it answered none."""
    if metrics.latest_window is None:
        return None
    end = metrics.latest_window["end"]
    rows = _ending(rows, end)
    if are_stays(rows.schema):  # those that hold the last window of a batch end with it
        rows = _ending(expanded(rows), end)
    return _current(rows)


def _ending(rows: pa.Table, end: Micros) -> pa.Table:
    return rows.filter(pc.equal(pc.cast(rows["window_end"], pa.timestamp("us")).cast(pa.int64()), end))


def front_sizes(windows: pa.Table, by: Sequence[str]) -> FrontSizes:
    """Count the rows of each window and group."""
    counted = windows.group_by(["window_end", *by]).aggregate([([], "count_all")]).sort_by("window_end")
    return FrontSizes(
        _micros(counted.column("window_end")),
        tuple(_group(row, by) for row in counted.select(list(by)).to_pylist()) if by else ("",) * counted.num_rows,
        counted.column("count_all").to_numpy(),
    )


def sizes_of_one_front(updates: pa.Table, by: Sequence[str]) -> FrontSizes:
    """Count the rows of each group's front after each instant at which some were added or deleted."""
    steps = pc.if_else(pc.equal(updates["action"], "ADD"), 1, -1)
    changed = updates.append_column("step", steps).group_by(["action_time", *by]).aggregate([("step", "sum")])
    changed = changed.sort_by("action_time")
    groups = tuple(_group(row, by) for row in changed.select(list(by)).to_pylist()) if by else ("",) * changed.num_rows
    counts, names = changed.column("step_sum").to_numpy().copy(), np.array(groups, dtype=object)
    for group in set(groups):
        counts[names == group] = counts[names == group].cumsum()
    return FrontSizes(_micros(changed.column("action_time")), groups, counts)


def example(windows: pa.Table, by: Sequence[str], everything: pa.Table | None = None, time: str = "") -> Example | None:
    """Return the first answer with the most rows, with the rows of `everything` in its window."""
    if not windows.num_rows:
        return None
    keys = ["window_start", "window_end", *by]
    counted = windows.group_by(keys).aggregate([([], "count_all")])
    largest = counted.sort_by([("count_all", "descending"), *((key, "ascending") for key in keys)]).slice(0, 1)
    key = largest.select(keys).to_pylist()[0]
    start, end = (int(_micros(largest.column(name))[0]) for name in ("window_start", "window_end"))
    front = windows.filter(_equal(key)).drop_columns(["window_start", "window_end"])
    if everything is not None:
        times = pc.cast(everything.column(time), pa.timestamp("us")).cast(pa.int64())
        inside = pc.and_(pc.greater_equal(times, start), pc.less(times, end))
        everything = everything.filter(inside).filter(_equal({name: key[name] for name in by}))
    return Example(start, end, _group(key, by), front, everything)


def _equal(key: Mapping[str, object]) -> pc.Expression:
    match = pc.scalar(True)  # noqa: FBT003
    for name, value in key.items():
        match &= pc.field(name).is_null() if value is None else pc.field(name) == pc.scalar(value)
    return match


def _group(row: Mapping[str, object], by: Sequence[str]) -> str:
    return ", ".join(str(row[name]) for name in by)


def _micros(column: pa.ChunkedArray) -> IntArray:
    times: IntArray = np.asarray(pc.cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64()))
    return times
