"""A database as sinks use it: transactions, types and quoting, by its client for Python (DB-API 2.0)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa


class Database(Protocol):
    """A database that knows INSERT ... ON CONFLICT."""

    @property
    def mark(self) -> str:
        """The sign for a value in a statement."""
        ...

    @property
    def lock(self) -> str:
        """The clause with which a SELECT locks its rows until the end of the transaction."""
        ...

    @property
    def has_schemas(self) -> bool:
        """Whether a table may be in a schema, `schema.table`."""
        ...

    @property
    def longest_name(self) -> int | None:
        """The most bytes of a name; longer ones are cut without an error. None if there is no such limit."""
        ...

    @property
    def error(self) -> type[Exception]:
        """The class of all errors of the client."""
        ...

    @property
    def passing_errors(self) -> tuple[type[Exception], ...]:
        """The classes of those that may pass: of the connection, the server or its disk."""
        ...

    def lacks_unique_key(self, error: Exception) -> bool:
        """Return whether an error says that ON CONFLICT has found no unique constraint on its columns."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Return a block with a cursor; its end commits, and an error in it takes all of it back."""
        ...

    def execute_many(self, cursor: Any, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement for each of these values, in their order."""
        ...

    def lock_creation(self, cursor: Any) -> None:
        """Wait until no other transaction creates tables for answers, and keep others from it until the end of this one."""
        ...

    def columns(self, cursor: Any, table: str) -> list[str]:
        """Return the names of a table's columns; none if there is no such table."""
        ...

    def namesakes(self, cursor: Any, name: str) -> list[str]:
        """Return the tables of a name that can be read, whatever schema they are in."""
        ...

    def is_same(self, cursor: Any, one: str, other: str) -> bool:
        """Return whether two names are of one table that is there."""
        ...

    def quoted(self, name: str) -> str:
        """Return a name as statements have it."""
        ...

    def type_of(self, kind: pa.DataType) -> str | None:
        """Return the type of a column that holds values of an Arrow type; None if there is none."""
        ...


def whole_number_bits(kind: pa.DataType) -> int | None:
    """Return how many bits a signed integer needs for all values of a type; None for a type of other values."""
    if not pa.types.is_integer(kind):
        return None
    return int(kind.bit_width) + int(pa.types.is_unsigned_integer(kind))
