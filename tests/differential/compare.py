"""How an answer is held against another: rows as multisets, numbers bit by bit.

The rule for zeros and NaN: a row that passes through keeps its bits, so that -0.0 is not 0.0; a key of an aggregate has one form,
in which -0.0 is 0.0 and NaN is NaN. Nested values are the same if they print the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, Case, Function, IntArray
from tests.differential.definition.aggregate import Near
from tests.differential.definition.values import key, lines
from tests.differential.expected import Expected, Refused, Rows, Updates, Values

START, END = "window_start", "window_end"
ByName: TypeAlias = Mapping[str, Any]


def difference(case: Case, wanted: Expected, found: Any) -> str | None:
    """Return in words how what a way has `found` differs from what the definition gives; None if it does not."""
    if isinstance(wanted, Refused):
        return None if isinstance(found, Refused) else f"{wanted.why}, and it was answered"
    if isinstance(found, Refused):
        return f"refused: {found.why}"
    if isinstance(wanted, Updates):
        updates, until = found
        return updates_differ(wanted.changes[wanted.changes[:, 0] < until], updates)
    ends = _ends_differ(case, found)
    if ends is not None:
        return ends
    return _rows_differ(wanted, found) if isinstance(wanted, Rows) else _values_differ(case, wanted, found)


def starts_of(answers: pa.Table) -> IntArray:
    """Return the start of each row's window in microseconds."""
    starts: IntArray = answers.column(START).cast(pa.int64()).to_numpy()
    return starts


def _ends_differ(case: Case, found: pa.Table) -> str | None:
    ends = found.column(END).cast(pa.int64()).to_numpy() if found.num_rows else np.empty(0, np.int64)
    starts = starts_of(found) if found.num_rows else ends
    if (starts[1:] < starts[:-1]).any():
        return "windows are out of order"
    return None if (ends - starts == case.windows.length).all() else "a window has another length"


def _rows_differ(wanted: Rows, found: pa.Table) -> str | None:
    stamped = wanted.rows.append_column(START, pa.array(wanted.starts))
    if not found.num_rows:
        return f"no rows, of {len(wanted.starts)} wanted" if len(wanted.starts) else None
    plain_found = found.drop_columns([START, END]).append_column(START, pa.array(starts_of(found)))
    if wanted.groups is None:
        stamped, plain_found = _sorted(stamped), _sorted(plain_found)
    else:
        stamped, plain_found = _by_group(stamped, wanted.groups), _by_group(plain_found, wanted.groups)
    if _same_bits(stamped, plain_found):
        return None
    return _difference_text(_ids(stamped), _ids(plain_found))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(START, "ascending"), (ID, "ascending")])


def _by_group(rows: pa.Table, groups: Sequence[str]) -> pa.Table:
    """Return the rows window by window and group by group; those of a group stay in their order."""
    keys = list(zip(*(map(repr, rows.column(name).to_pylist()) for name in (START, *groups)), strict=True))
    return rows.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))


def _ids(rows: pa.Table) -> list[tuple[int, int]]:
    return list(zip(rows.column(START).to_pylist(), rows.column(ID).to_pylist(), strict=True))


def _difference_text(wanted: list[Any], found: list[Any]) -> str:
    missing, more = _without(wanted, found), _without(found, wanted)
    if not missing and not more:
        return "the same rows in another order, or with other bits"
    return f"{len(missing)} missing, such as {missing[:3]}; {len(more)} too many, such as {more[:3]} (window start, id)"


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    return sorted((Counter(some) - Counter(others)).elements())


def same_answers(one: Any, other: Any) -> bool:
    """Whether two ways have found the same, to the bit, rows of a window in any order."""
    if isinstance(one, Refused) or isinstance(other, Refused):
        return isinstance(one, Refused) and isinstance(other, Refused)
    if not one.num_rows or not other.num_rows:
        return bool(one.num_rows == other.num_rows)
    return _same_bits(_by_content(one), _by_content(other))


def _by_content(rows: pa.Table) -> pa.Table:
    return _bits(rows).sort_by([(name, "ascending") for name in rows.column_names])


def _same_bits(one: pa.Table, other: pa.Table) -> bool:
    if one.schema.remove_metadata() != other.schema.remove_metadata():
        return False
    return bool(_bits(one).equals(_bits(other)))


def _bits(rows: pa.Table) -> pa.Table:
    """Return the rows with numbers as the integers of their bits, and nested values as they print."""
    return pa.Table.from_arrays([_column_bits(column) for column in rows.columns], names=rows.column_names)


def _column_bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    width = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}.get(column.type)
    if width is not None:
        return pa.chunked_array([chunk.view(width) for chunk in column.chunks], width)
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.string())])
    return column


def _values_differ(case: Case, wanted: Values, found: pa.Table) -> str | None:
    spec: Any = case.spec
    return values_differ(spec.by, spec.functions, wanted.rows, [(row[START], row) for row in lines(found)])


def values_differ(
    by: Sequence[str],
    functions: Sequence[Function],
    wanted: Sequence[tuple[int, ByName]],
    found: Sequence[tuple[int, ByName]],
    agree: Callable[[Any, Any], bool] | None = None,
) -> str | None:
    """Return how rows of aggregates, each with the start of its window, differ: in their keys, or in the first value that does.

    agree   which values are the same; None: those that admits() admits
    """
    mine, theirs = ({(start, *(key(row[name]) for name in by)): row for start, row in rows} for rows in (wanted, found))
    if len(theirs) != len(found) or theirs.keys() != mine.keys():
        return _difference_text(list(map(str, mine)), list(map(str, theirs)))
    for place, row in mine.items():
        for one in functions:
            if not (agree or admits)(row[one.name], theirs[place][one.name]):
                return f"{one.word}{one.columns} of {place}: {theirs[place][one.name]!r}, wanted {row[one.name]!r}"
    return None


def admits(wanted: Any, found: Any) -> bool:
    """Whether a value is what is wanted, or as near as it must be; a zero has its sign."""
    return wanted.admits(found) if isinstance(wanted, Near) else repr(wanted) == repr(found)


def updates_differ(wanted: IntArray, found: IntArray) -> str | None:
    """Return how the emitted updates differ; (m, 3) each, in order."""
    if np.array_equal(wanted, found):
        return None
    mine, theirs = {tuple(one) for one in wanted.tolist()}, {tuple(one) for one in found.tolist()}
    missing, more = sorted(mine - theirs), sorted(theirs - mine)
    if not missing and not more:
        return "the same updates in another order, or some twice"
    return f"{len(missing)} missing, such as {missing[:3]}; {len(more)} too many, such as {more[:3]} (time, action, id)"
