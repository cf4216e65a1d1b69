"""The algebra of all windowed queries: lift, combine, lower (paper 1, section 2.2: G is lift, H is combine)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from skypane.kernels.families import EVERY, SCORES
from skypane.operators.stays import WindowStays
from skypane.types import ConfigError


@runtime_checkable
class Query(Protocol):
    """A windowed query over Arrow tables; implement it to run your own query in batch, streaming and local mode.

    Laws, for every division of the rows of a window into tables r1..rn:
      - lower(combine([lift(r1), ..., lift(rn)])) is the same multiset of rows: the runtime may divide rows in any way;
      - combine is associative and commutative, and combine([p]) equals p;
      - no method modifies its arguments, reads a clock, or draws a random number.
    skypane.testing.check_query tests a query against them. Instances are pickled and sent to Spark's workers.

    >>> import pyarrow as pa
    >>> query = sp.Skyline("price MIN, rating MAX")
    >>> isinstance(query, sp.Query)
    True
    >>> partials = [query.lift(pa.table({"price": [price], "rating": [4.0]})) for price in (90.0, 75.0)]
    >>> query.lower(query.combine(partials)).to_pylist()
    [{'price': 75.0, 'rating': 4.0}]
    """

    @property
    def required(self) -> Sequence[str]:
        """Columns that need a value, which may be infinite; a row with a null or NaN in one of them is quarantined."""
        ...

    def reads(self, schema: pa.Schema) -> Sequence[str]:
        """Return the columns of `schema` that lift reads or passes on; only these are transferred to Python.

        The default, for classes that inherit from this one, is all columns.
        """
        return tuple(schema.names)

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if the query cannot process rows of `schema`."""
        ...

    def lift(self, rows: pa.Table) -> pa.Table:
        """Return the partial of some rows of one pane (a pane partition)."""
        ...

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        """Return the partial of the union of the rows; `partials` has at least one element."""
        ...

    def lower(self, partial: pa.Table) -> pa.Table:
        """Return the rows that the user sees for one window."""
        ...

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of lower()'s rows when the input rows have `schema`."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two queries exactly when they give the same answers."""
        ...


@runtime_checkable
class BulkQuery(Query, Protocol):
    """A query that lifts many panes in one call, for panes so short that a call for each costs more than its rows.

    >>> import pyarrow as pa
    >>> query = sp.Aggregate(n=sp.count())
    >>> isinstance(query, sp.BulkQuery)
    True
    >>> partials = query.lift_panes(pa.table({"price": [90.0, 75.0, 80.0]}), starts=[0, 2])  # two panes
    >>> [query.lower(partial).to_pylist() for partial in partials]
    [[{'n': 2}], [{'n': 1}]]
    """

    def lift_panes(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
        """Return the partial of each pane, as lift() would; `rows` are sorted by pane; pane i begins at starts[i]."""
        ...


class PaneQueue(Protocol):
    """A queue of the partials of panes, which returns the answer of all panes in it."""

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane that is younger than all others."""
        ...

    def evict_before(self, pane: int) -> None:
        """Remove every pane older than `pane`."""
        ...

    def answer(self) -> pa.Table:
        """Return lower() of the combination of all panes; the queue must hold at least one pane."""
        ...


@runtime_checkable
class FarSightedQueue(PaneQueue, Protocol):
    """A queue that answers several windows at once in less time than one after the other."""

    def answers(self, firsts: Sequence[int]) -> Iterator[pa.Table]:
        """Yield the answers of the windows that begin with these panes, ascending; all their panes have been pushed."""
        ...


@runtime_checkable
class StayingQueue(FarSightedQueue, Protocol):
    """A queue that may know in which windows each row is, without a copy of the row for each of them."""

    @property
    def knows_stays(self) -> bool:
        """Whether stays() may be called."""
        ...

    def stays(self, firsts: Sequence[int]) -> tuple[pa.Table, WindowStays]:
        """Return the rows of the answers of answers(), and by place the windows that hold each; instead of answers()."""
        ...


@runtime_checkable
class QueueQuery(Query, Protocol):
    """A query with its own queue, which is cheaper than combining tables: overlapping windows share all merges."""

    def queue(self, schema: pa.Schema, panes: int) -> PaneQueue | None:
        """Return an empty queue for partials of `schema`; None if the query has no queue for them.

        panes   panes per window: after evict_before(p), no pane from p + panes on is pushed until the next answer
        """
        ...


@runtime_checkable
class DivisibleQuery(Query, Protocol):
    """A query whose keys are independent of each other: workers may share a window, each with its own keys."""

    def divisible(self, schema: pa.Schema) -> bool:
        """Return whether partials of rows of `schema` can be divided by key."""
        ...

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        """Return the rows whose keys belong to `part`, one of `parts`; a key has the same part in every partial.

        The answers of all parts together are the answer of the window.
        """
        ...


@runtime_checkable
class TypedQuery(Query, Protocol):
    """A query with conditions or scores, which workers compute as Spark does over columns of some types, and Spark over others."""

    def for_types(self, schema: pa.Schema) -> Query:
        """Return the query with a column that Spark computes for each part that rows of `schema` do not fit."""
        ...


@runtime_checkable
class GrowingQuery(Query, Protocol):
    """A query that predicts the size of its partials, so that control can weigh whole panes against an exchange."""

    @property
    def growth(self) -> float:
        """The partial of n rows has about n^growth rows, up to a factor: 0 for a fixed number, 1 for a fixed share."""
        ...


def lift_panes(query: Query, panes: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """Return the partial of each pane's rows: in one call if the query supports it, else one after the other."""
    if not isinstance(query, BulkQuery) or len(panes) < 2:
        return [query.lift(rows) for rows in panes]
    starts = list(accumulate((rows.num_rows for rows in panes[:-1]), initial=0))
    partials = query.lift_panes(pa.concat_tables(panes), starts)
    if len(partials) != len(panes):
        raise ConfigError(f"{type(query).__name__}.lift_panes returned {len(partials)} partials for {len(panes)} panes")
    return partials


def kernel_families(queries: Iterable[Query]) -> frozenset[str]:
    """Return the families of kernels that queries need (kernels/families.py), by their attribute `kernel_families`; else all.

    Kernels of other families that a query calls nevertheless are compiled by the first call.
    """
    found = {family for query in queries for family in getattr(query, "kernel_families", EVERY)}
    return frozenset({*found, SCORES})  # scores: progress and control policies compute powers, too


def is_of_package(part: object) -> bool:
    """Return whether a query, or a part of one, is of this package; threads may share it, as one of others need not allow."""
    return type(part).__module__.startswith("skypane.")


def check_implements(query: object) -> None:
    """Raise ConfigError, naming the missing members, if `query` does not implement Query."""
    if isinstance(query, type):
        raise ConfigError(f"need a query, got the class {query.__name__}; create an instance with its arguments")
    missing = [name for name in _MEMBERS if not hasattr(query, name)]
    if missing:
        raise ConfigError(
            f"need a query such as sp.Skyline('price MIN, rating MAX'), got {type(query).__name__}, "
            f"which has no {', '.join(missing)}"
        )


_MEMBERS = ("required", "reads", "validate", "lift", "combine", "lower", "output_schema", "describe")
