"""The rows that are the answer of a query that chooses rows: skyline, k-dominant, top-delta, top-k; indices in, indices out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.differential.case import IntArray, KDominant, Skyline, TopDelta, TopK
from tests.differential.definition.preference import best, levels
from tests.differential.definition.score import scores
from tests.differential.definition.values import groups, keys, order, order_of_key, plain

Choice: TypeAlias = Callable[[IntArray], Sequence[int]]
"""From the rows of a window to those of its answer; of top-k in order, of others in any."""


def choice_of(rows: pa.Table, spec: Skyline | KDominant | TopDelta | TopK) -> Choice:
    """Return what chooses among `rows`, all of which are usable."""
    if isinstance(spec, TopK):
        return _top_k(rows, spec)
    points = levels(rows, spec.preference)
    of = groups(rows, (*spec.by, *spec.preference.groups))
    if isinstance(spec, Skyline):
        return lambda members: members[best([level[members] for level in points], of[members])].tolist()
    rule = _k_dominant(spec.k) if isinstance(spec, KDominant) else _top_delta(spec.delta)
    return lambda members: [
        row
        for group in np.unique(of[members])
        for mine in [members[of[members] == group]]
        for row in mine[rule(points[0][mine])].tolist()
    ]


def beaten_by(points: IntArray, k: int) -> NDArray[np.bool_]:
    """Return which points are k-dominated: another is as good in k columns, and better in one of these."""
    n, d = points.shape
    found = np.zeros(n, np.bool_)
    for begin in range(0, n, 512):
        some = points[begin : begin + 512]
        no_worse, better = np.zeros((2, n, len(some)), np.int64)
        for j in range(d):
            no_worse += points[:, None, j] <= some[None, :, j]
            better += points[:, None, j] < some[None, :, j]
        found[begin : begin + 512] = ((no_worse >= k) & (better > 0)).any(axis=0)
    return found


def _k_dominant(k: int) -> Callable[[IntArray], NDArray[np.bool_]]:
    return lambda points: ~beaten_by(points, k)


def _top_delta(delta: int) -> Callable[[IntArray], NDArray[np.bool_]]:
    def rule(points: IntArray) -> NDArray[np.bool_]:
        d = points.shape[1]
        for k in range(1, d + 1):
            left = ~beaten_by(points, k)
            if left.sum() > delta:
                break
        return left

    return rule


def _top_k(rows: pa.Table, spec: TopK) -> Choice:
    """Best first, in ascending order of groups; NaN behind all, equals by content."""
    value = scores(rows, spec.score)
    unknown = np.isnan(value)
    place = np.where(unknown, 0.0, -value if spec.largest else value) + 0.0
    of = keys(rows, spec.by)
    columns = [_contents(column) for column in rows.columns]

    def content(row: int) -> tuple[Any, ...]:
        return tuple(column[row] for column in columns)

    def choose(members: IntArray) -> Sequence[int]:
        chosen: dict[tuple[Any, ...], list[int]] = {}
        for row in members.tolist():
            chosen.setdefault(of[row], []).append(row)
        for group, mine in chosen.items():
            chosen[group] = _first(mine, unknown, place, content, spec.k)
        return [row for group in sorted(chosen, key=order_of_key) for row in chosen[group]]

    return choose


def _contents(column: pa.ChunkedArray) -> list[Any]:
    """Return what sorts a column by content; one of nested values by how they print, null as None."""
    values = plain(column)
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else [order(value) for value in values]


def _first(
    rows: list[int], unknown: NDArray[np.bool_], place: NDArray[np.float64], content: Callable[[int], Any], k: int
) -> list[int]:
    """Return the k first rows, in order; content is looked at only where there are equals."""
    rough = sorted(rows, key=lambda row: (bool(unknown[row]), float(place[row])))
    if len(rough) > k:
        last = (bool(unknown[rough[k - 1]]), float(place[rough[k - 1]]))
        rough = [row for row in rough if (bool(unknown[row]), float(place[row])) <= last]
    return sorted(rough, key=lambda row: (bool(unknown[row]), float(place[row]), content(row)))[:k]
