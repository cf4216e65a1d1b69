"""The one algebra under every windowed query: lift, combine, lower (paper 1, section 2.2: G is lift, H is combine)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from skypane.types import ConfigError


@runtime_checkable
class Query(Protocol):
    """A windowed query over Arrow tables; implement it to run a query of your own in batch, stream and local alike.

    Laws, for any way to divide the rows of a window into tables r1..rn:
      - lower(combine([lift(r1), ..., lift(rn)])) is the same multiset of rows (the runtime splits freely);
      - combine is associative and commutative, and combine([p]) equals p;
      - no method writes to its arguments, reads a clock, or draws a random number.
    skypane.testing.check_query holds a query to them. Instances are pickled to Spark's workers.
    """

    @property
    def required(self) -> Sequence[str]:
        """Columns that need a value, which may be infinite: a row in which one of them is null or NaN is quarantined."""
        ...

    def reads(self, schema: pa.Schema) -> Sequence[str]:
        """Return the columns of `schema` that lift looks at or hands on; no others need cross into Python.

        All of them, for a query whose class derives from this one and does not say otherwise.
        """
        return tuple(schema.names)

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if rows of `schema` cannot be answered."""
        ...

    def lift(self, rows: pa.Table) -> pa.Table:
        """Return the partial of some rows of one pane (a pane partition)."""
        ...

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        """Return the partial of the union; at least one partial is given."""
        ...

    def lower(self, partial: pa.Table) -> pa.Table:
        """Return the rows the user sees for one window."""
        ...

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of lower()'s rows when the input rows have `schema`."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two queries exactly when they give the same answers."""
        ...


@runtime_checkable
class BulkQuery(Query, Protocol):
    """A query that lifts many panes in one go: for panes so short that a call for each would cost more than its rows."""

    def lift_panes(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
        """Return the partial of each pane, as lift() would; `rows` lie pane by pane, pane i from row starts[i] on."""
        ...


class Queue(Protocol):
    """A queue of panes' partials that knows the answer of all of them."""

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane younger than all."""
        ...

    def evict_before(self, pane: int) -> None:
        """Forget every pane older than `pane`."""
        ...

    def answer(self) -> pa.Table:
        """Return what lower() would, of the combination of all panes; at least one was pushed and not evicted."""
        ...


@runtime_checkable
class FarSightedQueue(Queue, Protocol):
    """A queue that answers several windows at once, for which it takes less time than for one after the other."""

    def answers(self, firsts: Sequence[int]) -> Iterator[pa.Table]:
        """Yield the answers of windows that begin with these panes, ascending; all panes of all of them have been pushed."""
        ...


@runtime_checkable
class QueueQuery(Query, Protocol):
    """A query with a queue of its own, cheaper than combining tables: windows that overlap then share all merges."""

    def queue(self, schema: pa.Schema, panes: int) -> Queue | None:
        """Return a queue for partials of `schema`, empty; None if it has none for them.

        panes   of a window: after evict_before(p) no pane from p + panes on is pushed until the next answer
        """
        ...


@runtime_checkable
class DivisibleQuery(Query, Protocol):
    """A query whose keys have nothing to do with each other: workers may share a window, each with keys of its own."""

    def divisible(self, schema: pa.Schema) -> bool:
        """Return whether partials of rows of `schema` can be divided by their keys."""
        ...

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        """Return the rows of a partial whose keys are of one of the parts; a key is of the same part in each partial.

        The answers of all parts together are the answer.
        """
        ...


@runtime_checkable
class GrowingQuery(Query, Protocol):
    """A query that knows how large its partials are, so that control can weigh whole panes against an exchange."""

    @property
    def growth(self) -> float:
        """Of n rows of a pane about n^growth are in its partial, up to a factor: 0 a fixed number, 1 a fixed share."""
        ...


def lift_panes(query: Query, panes: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """Return the partial of each pane's rows: in one go if the query can, else one after the other."""
    if not isinstance(query, BulkQuery) or len(panes) < 2:
        return [query.lift(rows) for rows in panes]
    starts = list(accumulate((rows.num_rows for rows in panes[:-1]), initial=0))
    partials = query.lift_panes(pa.concat_tables(panes), starts)
    if len(partials) != len(panes):
        raise ConfigError(f"{type(query).__name__}.lift_panes returned {len(partials)} partials for {len(panes)} panes")
    return partials


def check_implements(query: object) -> None:
    """Raise ConfigError, naming what is missing, if `query` is no Query."""
    if isinstance(query, type):
        raise ConfigError(f"need a query, got the class {query.__name__} itself: call it with its arguments")
    missing = [name for name in _MEMBERS if not hasattr(query, name)]
    if missing:
        raise ConfigError(
            f"need a query such as sp.Skyline('price MIN, rating MAX'), got {type(query).__name__}, "
            f"which has no {', '.join(missing)}"
        )


_MEMBERS = ("required", "reads", "validate", "lift", "combine", "lower", "output_schema", "describe")
