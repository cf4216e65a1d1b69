"""What the definition says of a case: the answer of every window, or every update; and what of it a run may owe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, Aggregate, Case, Continuous, IntArray, TopK
from tests.differential.definition import aggregate, chosen, continuous
from tests.differential.definition.preference import levels
from tests.differential.definition.values import groups
from tests.differential.definition.windows import members, times, usable


@dataclass(frozen=True)
class Rows:
    """Rows of the answers: `starts` (m,) says of which window each is.

    groups  columns of the groups whose rows must come in this order, whichever group comes first: workers may share a
            window by them; None: rows may come in any order
    """

    starts: IntArray
    rows: pa.Table
    groups: tuple[str, ...] | None


@dataclass(frozen=True)
class Values:
    """Rows of aggregates, each with the start of its window: plain values, or Near ones."""

    rows: list[tuple[int, dict[str, Any]]]


@dataclass(frozen=True)
class Updates:
    """The updates of a front: (m, 3) times, ADD or DEL, ids; of those up to any clock, those before it. Ids distinguish rows."""

    changes: IntArray


@dataclass(frozen=True)
class Refused:
    """No answer: the package must raise BadInputError, for this reason."""

    why: str


Expected: TypeAlias = Rows | Values | Updates | Refused


def expected(case: Case, rows: pa.Table | None = None) -> Expected:
    """Return the answer to the rows of a case, or to others in their place: those that have entered."""
    rows = case.rows if rows is None else rows
    rows = rows.take(pa.array(usable(rows, case.spec)))
    when = times(rows)
    if isinstance(case.spec, Continuous):
        return _emitted(case.spec, rows, when)
    found = members(when, case.windows)
    if isinstance(case.spec, Aggregate):
        return _values(case.spec, rows, found)
    choose = chosen.choice_of(rows, case.spec)
    answers = [(start, choose(mine)) for start, mine in found]
    indices = [row for _, answer in answers for row in answer]
    starts = np.repeat(np.array([start for start, _ in answers], np.int64), [len(answer) for _, answer in answers])
    return Rows(starts, rows.take(pa.array(indices, pa.int64())), case.spec.by if isinstance(case.spec, TopK) else None)


def _values(spec: Aggregate, rows: pa.Table, found: list[tuple[int, IntArray]]) -> Values | Refused:
    try:
        return Values([(start, row) for start, mine in found for row in aggregate.answers(rows, spec, mine)])
    except aggregate.TooLargeError:
        return Refused("a sum of integers is beyond 64 bits")


def _emitted(spec: Continuous, rows: pa.Table, when: IntArray) -> Updates:
    points = levels(rows, spec.preference)[0]
    of = groups(rows, (*spec.by, *spec.preference.groups))
    starts, ends = continuous.stays(points, of, when, spec.window)
    ids = rows.column(ID).to_numpy().astype(np.int64)
    return Updates(continuous.updates_of(ids, starts, ends, 2**62))
