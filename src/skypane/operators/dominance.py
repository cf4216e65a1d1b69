"""Fronts smaller than the skyline, by k-dominance: the k-dominant skyline and the top-delta dominant query.

s k-dominates t if s is as good as t on k criteria and better on one of these (paper 1, section 2.1). A row that no row
of the window k-dominates is part of the skyline, and it is enough to compare the rows of the skyline with each other to
find it. Both queries therefore lift and combine as the skyline does, and filter once per window, in lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skypane.kernels import k_dominant_indices, top_delta_indices
from skypane.kernels.families import DOMINANCE
from skypane.operators.by_preference import is_count, take_rows
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.sliding_skyline import SlidingSkyline, sliding_skyline
from skypane.preference import Columns, Preference
from skypane.preference.groups import group_codes
from skypane.types import ConfigError, FloatArray, IntArray


class _SkylineFilter(Query):
    """Base of both queries: a skyline query with a different lower()."""

    kernel_families: ClassVar[Sequence[str]] = (*Skyline.kernel_families, DOMINANCE)
    preference: Preference
    by: tuple[str, ...]

    def _rank_by(self, preference: Preference | str, by: Columns) -> None:
        skyline = Skyline(preference, by)
        object.__setattr__(self, "preference", skyline.preference)
        object.__setattr__(self, "by", skyline.by)

    @cached_property
    def skyline(self) -> Skyline:
        """The skyline query that computes the partials."""
        return Skyline(self.preference, self.by)

    @property
    def required(self) -> tuple[str, ...]:
        return self.skyline.required

    @property
    def growth(self) -> float:
        return self.skyline.growth

    def validate(self, schema: pa.Schema) -> None:
        self.skyline.validate(schema)

    def lift(self, rows: pa.Table) -> pa.Table:
        return self.skyline.lift(rows)

    def queue(self, schema: pa.Schema, panes: int) -> SlidingSkyline | None:
        """Return a queue that applies lower() to the skyline of a window; None as for sliding_skyline()."""
        return sliding_skyline(self.preference, self.skyline.groups, schema, panes, self.lower)

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self.skyline.combine(partials)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def divisible(self, schema: pa.Schema) -> bool:
        return self.skyline.divisible(schema)

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        return self.skyline.part_of(partial, part, parts)


@dataclass(frozen=True, init=False)
class KDominant(_SkylineFilter):
    """k-dominant skyline: the rows that no row of their group k-dominates; the skyline for k = number of criteria.

    The preference must be one Pareto product; a prioritised chain among its factors counts as one criterion.

    >>> query = sp.KDominant(2, "price MIN, rating MAX, ts MAX")
    >>> sp.ask(offers, query).select("price", "rating").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 95.0|   4.8|
    +-----+------+
    """

    #: number of criteria on which a row is compared; at most as many as the preference has
    k: int
    #: which values of which columns are better
    preference: Preference
    #: one answer per distinct value of these columns and of the preference's diff() columns
    by: tuple[str, ...]

    def __init__(self, k: int, preference: Preference | str, by: Columns = ()) -> None:
        object.__setattr__(self, "k", k)
        self._rank_by(preference, by)
        d = len(self.preference.require_flat("k-dominant queries"))
        if not (is_count(self.k) and 1 <= self.k <= d):
            raise ConfigError(f"need 1 <= k <= {d}, the number of criteria in {self.preference!r}, got k={self.k!r}")

    def lower(self, partial: pa.Table) -> pa.Table:
        return _filtered(partial, self.skyline, lambda points: k_dominant_indices(points, self.k, only_skyline=True))

    def describe(self) -> dict[str, Any]:
        return {**self.skyline.describe(), "query": "k_dominant", "k": self.k}

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"{self.k}-dominant {self.skyline}"


@dataclass(frozen=True, init=False)
class TopDelta(_SkylineFilter):
    """Top-delta dominant query: the k-dominant skyline for the smallest k that gives more than `delta` rows per group.

    If no k does, it is the whole skyline of the group. The preference must be one Pareto product, as for KDominant.

    >>> query = sp.TopDelta(2, "price MIN, rating MAX, ts MAX")
    >>> sp.ask(offers, query).select("price", "rating").orderBy("price").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 60.0|   4.4|
    | 90.0|   4.5|
    | 95.0|   4.8|
    +-----+------+
    """

    #: each group has more than this number of rows in its answer, if its skyline has
    delta: int
    #: which values of which columns are better
    preference: Preference
    #: one answer, with its own k, per distinct value of these columns and of the preference's diff() columns
    by: tuple[str, ...]

    def __init__(self, delta: int, preference: Preference | str, by: Columns = ()) -> None:
        object.__setattr__(self, "delta", delta)
        self._rank_by(preference, by)
        self.preference.require_flat("top-delta queries")
        if not (is_count(self.delta) and self.delta >= 0):
            raise ConfigError(f"need a whole delta >= 0, got delta={self.delta!r}")

    def lower(self, partial: pa.Table) -> pa.Table:
        return _filtered(
            partial, self.skyline, lambda points: top_delta_indices(points, self.delta, only_skyline=True)[0]
        )

    def describe(self) -> dict[str, Any]:
        return {**self.skyline.describe(), "query": "top_delta", "delta": self.delta}

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"k-dominant {self.skyline}, with the smallest k that gives more than {self.delta} rows"


def _filtered(skyline: pa.Table, query: Skyline, rule: Callable[[FloatArray], IntArray]) -> pa.Table:
    """Return the rows that `rule` selects from the points of each group."""
    points = query.preference.orient(skyline)
    members = _members(group_codes(skyline, query.groups), skyline.num_rows)
    chosen = [indices[rule(np.asfortranarray(points[indices]))] for indices in members]
    return take_rows(skyline, np.sort(np.concatenate(chosen)))


def _members(groups: IntArray | None, n: int) -> Iterator[IntArray]:
    """Yield the row indices of each group: at least one group, which may be empty."""
    if groups is None or n == 0:
        yield np.arange(n)
        return
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    yield from np.split(order, starts)
