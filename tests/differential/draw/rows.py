"""Rows: columns that form groups, are ranked, or only pass through; some rows twice; in the order in which they come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, SOURCE, TIME, IntArray
from tests.differential.draw import times, values

Rng = np.random.Generator


class Drawn(NamedTuple):
    """Rows in order of time, and what is known of them."""

    rows: pa.Table
    #: how they come
    coming: times.Coming
    #: of the columns that may be ranked, by name (values.py)
    kinds: dict[str, str]
    #: the columns that may form groups
    by: tuple[str, ...]
    #: whether each source sends in order of time
    by_sources: bool


def rows(rng: Rng, n: int, kind: str, *, blocks: bool, in_order: bool) -> Drawn:
    """Return n rows for a kind of query; `blocks`: those that show what is wrong between blocks of a front.

    in_order  sources, if there are any, may each send in order of time; else rows are unruly
    """
    how = times.coming(rng, n)
    how = how if in_order else times.unruly(rng, how)
    by = {f"g{number}": _keys(rng, n) for number in range(int(rng.choice([0, 0, 0, 1, 1, 2])))}
    columns, kinds = _columns(rng, how.times, by, kind, blocks=blocks)
    table = pa.table(columns).append_column(ID, pa.array(np.arange(n)))
    ordered = SOURCE in columns and in_order and rng.random() < 0.4
    if ordered:
        sources = np.array([int(name[1:]) for name in table.column(SOURCE).to_pylist()], np.int64)
        how = how._replace(arrival=times.by_sources(rng, how.times, sources))
    if kind != "continuous" and n and rng.random() < 0.3:
        table, how = _with_copies(rng, table, how)
    return Drawn(table, how, kinds, tuple(by), ordered)


def _keys(rng: Rng, n: int) -> pa.Array:
    """Return a column that may form groups: few, many, skewed ones, with nulls."""
    style = rng.integers(6)
    few = rng.integers(0, int(rng.choice([1, 2, 3, 6])), n)
    if style == 0:
        return pa.array(few << int(rng.choice([0, 40])))  # with one ending, or not
    if style == 1:
        return pa.array([["a", "b", None, "", "ä", "zz"][one] for one in few.tolist()], pa.string())
    if style == 2:
        return pa.array([[0.0, -0.0, float("nan"), None, 1.5, float("inf")][one] for one in few.tolist()], pa.float64())
    if style == 3:
        return pa.array(np.minimum(rng.zipf(1.6, n), 1_000).astype(np.int32))
    if style == 4:
        return pa.array(few % 2 == 0)
    return pa.array(rng.integers(0, max(1, n // 2), n))


def _columns(
    rng: Rng, when: IntArray, by: dict[str, pa.Array], kind: str, *, blocks: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the columns of rows in order of time, and the kinds of those that may be ranked."""
    n = len(when)
    d = int(rng.choice([3, 4, 4, 6] if blocks else [1, 2, 2, 3, 3, 4, 5, 8]))
    kinds = ["double"] * d if blocks else values.kinds(rng, d, n)
    points = values.improving(rng, n, d) if blocks else values.points(rng, n, d)
    gaps = not blocks and rng.random() < (0.6 if kind == "aggregate" else 0.2)
    columns: dict[str, Any] = {TIME: _times(rng, when)}
    if rng.random() < 0.3:
        columns[SOURCE] = pa.array([f"s{one}" for one in rng.integers(0, 3, n).tolist()], pa.string())
    columns |= by
    for j, one in enumerate(kinds):
        column = values.column(rng, points[:, j], one)
        columns[f"c{j}"] = values.with_gaps(rng, column, float(rng.choice([0.02, 0.2]))) if gaps else column
    if kind == "aggregate" or rng.random() < 0.2:
        columns["word"] = pa.array(rng.choice(np.array(["a", "b", "zz", "", None], object), n).tolist(), pa.string())
    if n <= 2_000 and kind != "aggregate":
        columns |= _passengers(rng, n)
    return columns, {f"c{j}": one for j, one in enumerate(kinds)}


def _times(rng: Rng, when: IntArray) -> pa.Array:
    column = pa.array(when).cast(pa.timestamp("us", "UTC" if rng.random() < 0.7 else None))
    if len(when) and rng.random() < 0.05:
        return values.with_gaps(rng, column, 0.1)
    return column


def _passengers(rng: Rng, n: int) -> dict[str, Any]:
    """Columns that only pass through."""
    found: dict[str, Any] = {}
    few = rng.integers(0, 3, n).tolist()
    if rng.random() < 0.25:
        found["record"] = pa.array([{"a": "x" * one, "b": [one, None]} if one else None for one in few],
                                   pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]))  # fmt: skip
    if rng.random() < 0.25:
        found["list"] = pa.array([[1.5, None][:one] if one else None for one in few], pa.list_(pa.float64()))
    if rng.random() < 0.1:
        found["rare"] = pa.array([[None, -0.0, float("nan")][one] for one in few], pa.float64())
    return found


def _with_copies(rng: Rng, rows: pa.Table, how: times.Coming) -> tuple[pa.Table, times.Coming]:
    """Return the rows with some of them twice, or more often."""
    n = rows.num_rows
    again = np.sort(np.concatenate([np.arange(n), rng.integers(0, n, int(rng.integers(1, min(n, 20) + 1)))]))
    arrival = np.argsort(np.argsort(how.arrival, kind="stable")[again], kind="stable")
    return rows.take(pa.array(again)), how._replace(times=how.times[again], arrival=arrival)
