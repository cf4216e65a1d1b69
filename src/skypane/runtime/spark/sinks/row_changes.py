"""Kinds of answers by their columns: versions of windows, and changes of rows that have a key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.fronts.row_front import ACTION_TIME
from skypane.operators.window_query import ACTION, ADDED, EMPTY, REMOVED, VERSION, WINDOW_END, WINDOW_START
from skypane.runtime.spark.sinks.batch_rows import BatchRows


def is_versioned(schema: pa.Schema) -> bool:
    """Return whether answers are versions of windows, each of which replaces the version before it."""
    return schema.names[:3] == [WINDOW_START, WINDOW_END, VERSION] and EMPTY in schema.names[3:5]


def are_of_windows(schema: pa.Schema) -> bool:
    """Return whether rows are changes of windows, by the columns that they begin with."""
    return schema.names[:3] == [WINDOW_START, WINDOW_END, VERSION] and ACTION in schema.names[3:5]


def are_changes(schema: pa.Schema) -> bool:
    """Return whether rows are changes, each with its action."""
    return are_of_windows(schema) or schema.names[:2] == [ACTION, ACTION_TIME]


def in_order(answers: BatchRows) -> Iterator[pa.Table]:
    """Yield the rows of a batch in the order in which they are applied by key.

    The updates of a front come so. A window has at most one version in a batch, of which several files may have rows, so
    all rows that are removed come before those that are added: a row that changes is one of each, with the same key.
    """
    if not are_of_windows(answers.schema):
        yield from answers.parts()
        return
    for action in (REMOVED, ADDED):
        for part in answers.parts():
            yield part.filter(pc.equal(part[ACTION], action))
