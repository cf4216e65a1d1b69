"""The one algebra under every windowed query: lift, combine, lower (paper 1, section 2.2: G is lift, H is combine)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class Query(Protocol):
    """A windowed query over Arrow tables; implement it to run a query of your own in batch, stream and local alike.

    Laws, for any way to divide the rows of a window into tables r1..rn:
      - lower(combine([lift(r1), ..., lift(rn)])) is the same multiset of rows (Query.lift splits freely);
      - combine is associative and commutative, and combine([p]) equals p;
      - no method writes to its arguments, reads a clock, or draws a random number.
    Instances are pickled to Spark's workers.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Columns that must be there, finite or not: a row in which one of them is null or NaN is quarantined."""
        ...

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
