"""Metadata of a schema of columns to be read: whether their places are wanted, and how Spark is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from skypane.runtime.local_times import UTC

_PLACES: Final = b"places"
_ZONE: Final = b"zone"
_CASE: Final = b"case"


def with_places(columns: pa.Schema) -> pa.Schema:
    """Return columns for reading rows with two more: their offsets, and their texts."""
    return _with(columns, {_PLACES: b""})


def wants_places(columns: pa.Schema) -> bool:
    """Return whether rows of these columns are to be read with two more."""
    return _PLACES in (columns.metadata or {})


def set_as_spark(columns: pa.Schema, zone: str, *, case_sensitive: bool) -> pa.Schema:
    """Return columns for reading rows as a session reads them.

    zone            spark.sql.session.timeZone, of times that have none
    case_sensitive  spark.sql.caseSensitive: whether a column of a file must have the very name
    """
    return _with(columns, {_ZONE: zone.encode()} | ({_CASE: b""} if case_sensitive else {}))


def zone_of(columns: pa.Schema) -> str:
    """Return the zone of times that have none; UTC unless the columns say another."""
    zone: bytes = (columns.metadata or {}).get(_ZONE, UTC.encode())
    return zone.decode()


def names_of(columns: pa.Schema, written: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a file, where one is a column to be read under that column's name, as Spark compares names.

    Raises ValueError, naming the column, if two of them are the same column.

    >>> names_of(pa.schema([("v", pa.int64())]), ["ts", "V"])
    ('ts', 'v')
    """
    wanted = {_folded(columns, name): name for name in columns.names}
    found: dict[str, str] = {}
    for name in written:
        column = wanted.get(_folded(columns, name))
        if column in found:
            raise ValueError(f"column {column!r} is there twice, as {found[column]!r} and as {name!r}")
        if column is not None:
            found[column] = name
    return tuple(wanted.get(_folded(columns, name), name) for name in written)


def _folded(columns: pa.Schema, name: str) -> str:
    return name if _CASE in (columns.metadata or {}) else name.lower()


def _with(columns: pa.Schema, told: Mapping[bytes, bytes]) -> pa.Schema:
    return columns.with_metadata({**(columns.metadata or {}), **told})
