"""A cover of a sample: few of its points that together dominate a large share of it, within groups.

strong_points.py finds such points for the skyline kernel, compiled, among the columns of one group. A sample is small
and read once in a query, so NumPy is fast enough here, and groups and a lead need no further kernel to compile.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.types import BoolArray, FloatArray, IntArray

CANDIDATES: Final = 64
"""Points among which the cover is chosen: those with the least sums of ranks, from each group as many."""
JUDGES: Final = 1024
"""Points, evenly over the sample, on which candidates are compared."""


class Cover(NamedTuple):
    """The indices of the points, the strongest first, and the share of the sample that they dominate together."""

    indices: IntArray
    share: float


def sample_cover(points: FloatArray, groups: IntArray | None, lead: int, most: int, least: float) -> Cover:
    """Return at most `most` points of an (n, d) sample, without NaN, that dominate much of it: a greedy cover.

    groups  a code per point, shape (n,): points of different groups do not dominate each other; None: one group
    lead    the column in which a point must be strictly better, and as good in all others, to dominate here
    least   share of the sample that each further point must dominate in addition
    """
    if len(points) == 0:
        return Cover(np.empty(0, np.int64), 0.0)
    groups = np.zeros(len(points), np.int64) if groups is None else groups
    candidates = _candidates(points, groups)
    judges = np.arange(0, len(points), max(1, len(points) // JUDGES))
    return _greedy(candidates, _dominated(points, groups, lead, candidates, judges), most, least)


def _candidates(points: FloatArray, groups: IntArray) -> IntArray:
    """Return the indices of the points of each group with the least sums of ranks, of large groups first."""
    _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    scores = np.sum([_ranks(column) for column in points.T], axis=0)
    order = np.lexsort((scores, members))
    places = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[members[order]]
    firsts = order[places < max(1, CANDIDATES // len(sizes))]
    by_size = np.argsort(-sizes[members[firsts]], kind="stable")
    return firsts[by_size[:CANDIDATES]]


def _ranks(values: FloatArray) -> IntArray:
    """Return dense ranks: sums of them do not depend on the scales of columns, and infinities are values as others."""
    ranks: IntArray = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks


def _dominated(points: FloatArray, groups: IntArray, lead: int, candidates: IntArray, judges: IntArray) -> BoolArray:
    """Return a mask, shape (candidates, judges): whether the candidate dominates the judge."""
    mask: BoolArray = groups[candidates][:, None] == groups[judges]
    for number, column in enumerate(points.T):
        ours, theirs = column[candidates][:, None], column[judges]
        mask &= (ours < theirs) if number == lead else (ours <= theirs)
    return mask


def _greedy(candidates: IntArray, dominated: BoolArray, most: int, least: float) -> Cover:
    judges = dominated.shape[1]
    left = np.ones(judges, np.bool_)
    chosen: list[int] = []
    while len(chosen) < most:
        gains = np.count_nonzero(dominated & left, axis=1)
        best = int(gains.argmax())  # the first of equal ones
        if gains[best] < max(1, least * judges):
            break
        chosen.append(int(candidates[best]))
        left &= ~dominated[best]
    return Cover(np.array(chosen, np.int64), 1.0 - np.count_nonzero(left) / judges)
