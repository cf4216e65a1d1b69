"""Which rows are better than which, as integers: smaller is better in each column of each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.differential.case import Component, Criterion, IntArray, Preference
from tests.differential.definition.values import dense, plain

FEW = 1_024
"""Rows up to which each is compared with each."""


def levels(rows: pa.Table, preference: Preference) -> list[IntArray]:
    """Return the points of each level, (n, components)."""
    return [np.column_stack([_component(rows, one) for one in level]) for level in preference.levels]


def _component(rows: pa.Table, component: Component) -> IntArray:
    ranks = [_ranks(rows, criterion) for criterion in component]
    if len(ranks) == 1:
        return ranks[0]
    # The place of each row among the different ones, by the first criterion, then the second, ...
    return np.unique(np.column_stack(ranks), axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _ranks(rows: pa.Table, criterion: Criterion) -> IntArray:
    values = plain(rows.column(criterion.column))
    if criterion.sense == "around":
        values = [_distance(value, criterion.lo, criterion.hi) for value in values]
    if values and isinstance(values[0], int) and not isinstance(values[0], bool):
        inside = all(-(2**63) <= value < 2**63 for value in values)
        ranks = dense(np.array(values, np.int64)) if inside else dense(values)
    else:
        ranks = dense(values)
    return -ranks if criterion.sense == "high" else ranks


def _distance(value: Any, lo: Any, hi: Any) -> Any:
    """Return how far a value is from [lo, hi]: exactly for whole numbers, else in float64."""
    if all(isinstance(one, int) for one in (value, lo, hi)):
        return max(lo - value, value - hi, 0)
    x = float(value)
    return max(float(lo) - x, x - float(hi), 0.0)


def best(points: Sequence[IntArray], groups: IntArray) -> NDArray[np.int64]:
    """Return the indices of the rows that no row of their group is better than, ascending."""
    if len(groups) <= FEW:
        return np.flatnonzero(~beaten(points, groups))
    columns = np.column_stack(points)
    chosen: list[int] = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        chosen += members[_swept([level[members] for level in points], columns[members])].tolist()
    return np.array(sorted(chosen), np.int64)


def beaten(points: Sequence[IntArray], groups: IntArray) -> NDArray[np.bool_]:
    """Return whether a row of its group is better than each: all pairs."""
    same = groups[:, None] == groups[None, :]
    found: NDArray[np.bool_] = (better(points, points) & same).any(axis=0)
    return found


def better(some: Sequence[IntArray], others: Sequence[IntArray]) -> NDArray[np.bool_]:
    """Return where a row of `some` is better than one of `others`, (n, m); of levels, the first at which they are not equal decides."""
    shape = len(some[0]), len(others[0])
    found, equal = np.zeros(shape, np.bool_), np.ones(shape, np.bool_)
    for mine, theirs in zip(some, others, strict=True):
        no_worse, same = np.ones(shape, np.bool_), np.ones(shape, np.bool_)
        for j in range(mine.shape[1]):
            no_worse &= mine[:, None, j] <= theirs[None, :, j]
            same &= mine[:, None, j] == theirs[None, :, j]
        found |= equal & no_worse & ~same
        equal &= same
    return found


def _swept(points: Sequence[IntArray], columns: IntArray) -> list[int]:
    """Return the best of one group: whatever is better than a row comes before it in the order of its columns."""
    order = np.lexsort(columns.T[::-1])
    kept: list[int] = []
    for row in order.tolist():
        one = [level[[row]] for level in points]
        if not better([level[kept] for level in points], one).any():
            kept.append(row)
    return kept
