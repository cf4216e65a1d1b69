"""The top-k query: the k rows of a window with the best score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skypane.kernels.families import SCORES
from skypane.operators.by_preference import is_count, one_per, take_rows
from skypane.operators.key_parts import have_parts, rows_of_part
from skypane.operators.query import Query
from skypane.preference import ColumnLike, Columns
from skypane.preference.column_checks import check_group, column_names
from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import column_ranks, row_ranks
from skypane.preference.groups import group_codes
from skypane.preference.score import Score
from skypane.types import BoolArray, ConfigError, IntArray, truth


@dataclass(frozen=True, init=False)
class TopK(Query):
    """Top-k query: the k rows of each group with the best score, best first; all rows of a group that has fewer.

    Ties for the last places are broken by content, column by column in ascending order (nulls last), never by position:
    the answer does not depend on how rows were split, ordered or retried. A row whose score is NaN ranks behind all
    others, and is in the answer only if its group has fewer than k better rows. lower sorts groups in ascending order
    of their columns, and the rows of a group by score, then by content; where tasks share a window by its groups, each
    answers its own groups in this order.

    >>> sp.ask(offers, sp.TopK(2, "rating - price / 100")).select("price", "rating").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 95.0|   4.8|
    | 60.0|   4.4|
    +-----+------+
    """

    #: number of rows of each group
    k: int
    #: a column, or SQL such as "2 * rating - price"
    score: Score
    #: one answer per distinct value of these columns; null counts as a value
    by: tuple[str, ...]
    #: whether a larger score is better
    largest: bool

    kernel_families: ClassVar[Sequence[str]] = (SCORES,)

    def __init__(self, k: int, score: Score | ColumnLike, by: Columns = (), largest: bool = True) -> None:
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "score", Score.of(score))
        object.__setattr__(self, "by", column_names(by, "by"))
        object.__setattr__(self, "largest", truth(largest, "largest"))
        if not (is_count(self.k) and self.k >= 1):
            raise ConfigError(f"need a whole k >= 1, got k={self.k!r}")

    @property
    def required(self) -> tuple[str, ...]:
        """The columns of the score; columns that only form groups may be null."""
        return self.score.columns

    @property
    def growth(self) -> float:
        """0: a partial has at most k rows per group, however many rows it was lifted from."""
        return 0.0

    def validate(self, schema: pa.Schema) -> None:
        self.score.validate(schema)
        for column in self.by:
            check_group(schema, column)

    def for_types(self, schema: pa.Schema) -> TopK:
        """Return the same query with a column that Spark computes for a score that workers cannot compute as Spark does."""
        return TopK(self.k, self.score.for_types(schema), self.by, self.largest)

    def lift(self, rows: pa.Table) -> pa.Table:
        return take_rows(rows, _first_k(rows, self._keys(rows), group_codes(rows, self.by), self.k))

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return partials[0] if len(partials) == 1 else self.lift(pa.concat_tables(partials))

    def lower(self, partial: pa.Table) -> pa.Table:
        keys = self._keys(partial)
        by = [column_ranks(partial.column(name)) for name in self.by]  # not content_keys: -0.0 and 0.0 are one group
        groups = row_ranks(by) if by else np.zeros(len(keys), np.int64)
        order = np.lexsort((keys, groups))
        runs = _runs(groups[order], keys[order])
        return partial.take(_settled(partial, order, runs, np.bincount(runs)[runs] > 1))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def divisible(self, schema: pa.Schema) -> bool:
        """Return whether there are groups, and their columns can be hashed."""
        return have_parts(schema, self.by)

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        return rows_of_part(partial, self.by, part, parts)

    def describe(self) -> dict[str, Any]:
        return {"query": "top_k", "k": self.k, "score": str(self.score), "largest": self.largest, "by": sorted(self.by)}

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"the {self.k} rows of {'largest' if self.largest else 'smallest'} {self.score}{one_per(self.by)}"

    def _keys(self, rows: pa.Table) -> IntArray:
        return self.score.keys(rows, largest=self.largest)


def _first_k(rows: pa.Table, keys: IntArray, groups: IntArray | None, k: int) -> IntArray:
    """Return the indices of the first k rows of each group, ascending."""
    if groups is None:
        order, groups = _candidates(keys, k), np.zeros(len(keys), np.int64)
    else:
        order = np.lexsort((keys, groups))
    places, runs = _places(groups[order]), _runs(groups[order], keys[order])
    last = np.flatnonzero(places[:-1] == k - 1)
    cut = last[runs[last] == runs[last + 1]]  # runs with rows on both sides of the k-th place
    order = _settled(rows, order, runs, np.isin(runs, runs[cut]))
    return np.sort(order[places < k])


def _candidates(keys: IntArray, k: int) -> IntArray:
    """Return the indices of the rows whose key is at most the k-th smallest, in ascending order of key."""
    if len(keys) <= k:
        return np.argsort(keys, kind="stable")
    reached = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
    return reached[np.argsort(keys[reached], kind="stable")]


def _settled(rows: pa.Table, order: IntArray, runs: IntArray, tied: BoolArray) -> IntArray:
    """Return `order` with ties broken: the rows of each run at the places `tied` are sorted by content."""
    if not tied.any():
        return order
    contested = order[tied]
    content = content_keys(rows.take(contested))
    settled = order.copy()
    settled[tied] = contested[np.lexsort((*content[::-1], runs[tied]))]
    return settled


def _places(groups: IntArray) -> IntArray:
    """Return each row's place in its group, from 0 on, for rows sorted by group."""
    at = np.arange(len(groups))
    starts: IntArray = np.maximum.accumulate(np.where(_changes(groups), at, 0))
    return at - starts


def _runs(groups: IntArray, keys: IntArray) -> IntArray:
    """Return the number of each row's run of equal keys in its group, for rows sorted by group and key."""
    return np.cumsum(_changes(groups) | _changes(keys))


def _changes(values: IntArray) -> BoolArray:
    """Return the mask of the values that differ from their predecessor; the first value is always one of them."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes
