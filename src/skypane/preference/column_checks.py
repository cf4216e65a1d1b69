"""Checks, made once when a job is planned, whether the columns of a schema can be ranked, grouped, or computed with."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from skypane.naming import nearest, shortened
from skypane.preference.around import check_target
from skypane.preference.column import Columns, column_name
from skypane.preference.criteria import Around, Criterion
from skypane.preference.written import identity
from skypane.types import ConfigError


def field_of(schema: pa.Schema, column: str) -> pa.Field:
    """Return the field called `column`; raise ConfigError if it is missing, naming similar ones, or not unique."""
    positions = schema.get_all_field_indices(column)
    if len(positions) == 1:
        return schema.field(positions[0])
    if positions:
        raise ConfigError(f"column {column!r} occurs {len(positions)} times in the schema; rename all but one")
    raise ConfigError(f"column {shortened(column)!r} does not exist; {_near(schema.names, column)}")


def check_criterion(schema: pa.Schema, criterion: Criterion) -> None:
    """Raise ConfigError, naming column and type, if values of the criterion's column have no order or no distance."""
    kind = field_of(schema, criterion.column).type
    if not is_orderable(kind):
        raise ConfigError(
            f"column {criterion.column!r} of type {kind} has no order; rank a number, text or time instead"
        )
    if is_text(kind):
        raise ConfigError(
            f"column {criterion.column!r} of type {kind} is text, which has no better and worse values; to form "
            f"groups, write {criterion.column} DIFF or by={criterion.column!r}; if its values do have an order, rank "
            f"a number or a date derived from them"
        )
    if isinstance(criterion, Around):
        check_target(criterion, value_type(kind))


def check_group(schema: pa.Schema, column: str) -> None:
    """Raise ConfigError, naming column and type, if rows cannot be grouped by `column`."""
    kind = field_of(schema, column).type
    if not is_orderable(kind):
        raise ConfigError(f"column {column!r} of type {kind} cannot form groups; use a number, text or time instead")


def is_orderable(kind: pa.DataType) -> bool:
    """Return whether values of `kind` have an order: numbers, booleans, texts, bytes, times and durations.

    A dictionary type has an order if its values do.
    """
    kind = value_type(kind)
    t = pa.types
    tests = (
        t.is_integer,
        t.is_floating,
        t.is_decimal,
        t.is_boolean,
        t.is_date,
        t.is_time,
        t.is_timestamp,
        t.is_duration,
    )
    return is_text(kind) or any(test(kind) for test in tests)


def is_text(kind: pa.DataType) -> bool:
    """Return whether `kind` is text or bytes, except in a dictionary: its values are codes, and Spark sends none."""
    t = pa.types
    texts = (t.is_string, t.is_large_string, t.is_string_view)
    blobs = (t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary)
    return any(test(kind) for test in texts + blobs)


def column_names(columns: Columns, argument: str) -> tuple[str, ...]:
    """Return the names of one or several columns, as a user may write them, without repetition."""
    several = columns if isinstance(columns, list | tuple) else (columns,)
    names = [column_name(column, argument) for column in several]
    return tuple({identity(name): name for name in names}.values())


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values; of a dictionary type, that of the values it encodes."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _near(names: Sequence[str], column: str) -> str:
    near = nearest(column, names, most=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"the columns are {', '.join(map(repr, names))}" if names else "there are no columns"
