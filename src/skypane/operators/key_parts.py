"""Divide the rows of a partial by their keys, so that workers may share a window, each with its own keys."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from skypane.control.keys import basic
from skypane.operators.aggregates.stable_hashes import can_be_hashed, key_hashes
from skypane.preference.column_checks import field_of, value_type


def have_parts(schema: pa.Schema, by: Sequence[str]) -> bool:
    """Return whether rows of `schema` have keys in the columns of `by`, all of which can be hashed."""
    return bool(by) and all(can_be_hashed(value_type(field_of(schema, name).type)) for name in by)


def rows_of_part(rows: pa.Table, by: Sequence[str], part: int, parts: int) -> pa.Table:
    """Return the rows whose keys belong to a part, by basic hashing: tasks keep no state, so a key may change its task."""
    return rows.filter(pa.array(basic(key_hashes(rows, by), parts) == part))
