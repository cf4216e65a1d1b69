"""The way in which a static query runs: in tasks, in one task, or in tasks after a prefilter of its rows.

A prefilter compares rows with a few points of a sample inside Spark, so that most rows are never sent to Python. It
reads a sample first, in a stage of its own, and reads the rows again: rows that are expensive to read twice, or could
be others the second time, are not prefiltered. Few rows are answered in one task, which saves the exchange of partials
and the second Python stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

StaticWay: TypeAlias = Literal["tasks", "one task", "prefilter"]

FEW: Final = 100_000
"""Rows that one task answers in less time than the exchange of partials and a second stage take."""
FEW_BYTES: Final = 32 << 20
"""Bytes of these rows, which may have long texts, at most."""
SHARES: Final = (1.0, 0.98, 0.96, 0.92, 0.83, 0.74, 0.63, 0.53)
"""Shares of independent rows with 1, 2, .. criteria that a prefilter drops; of more criteria nothing is expected."""
SAMPLE_SECONDS: Final = 0.2
"""Time of the stage that reads the sample and chooses the points, of the join, and of the larger plan."""
SENT_NS: Final = (120.0, 40.0)
"""Time of a core to send a row to Python and to lift it there: for the row, and for each of its columns."""
COMPARED_NS: Final = (20.0, 10.0)
"""Time of a core to compare a row with all points: for the row, and for each criterion."""

_COMPRESSED: Final = 8
"""Rows and bytes that a file may hold for each one that its size suggests."""
_MARGIN: Final = 1.5
"""How many times a prefilter must save what it costs, as both are estimates."""


@dataclass(frozen=True, slots=True)
class RowsAtRest:
    """Rows that can be read again, and are then the same.

    rows       estimated number, before filters
    bytes      estimated size of all their columns
    in_memory  whether they are in memory or computed from numbers, so that reading them again costs little
    filtered   whether a filter may leave out most of them, so that a sample could take as long as reading all
    """

    rows: int
    bytes: int
    in_memory: bool
    filtered: bool


def static_way(at_rest: RowsAtRest | None, columns: int, criteria: int | None, workers: int) -> StaticWay:
    """Return the fastest way for a query.

    at_rest   what is known of the rows; None: nothing
    columns   columns that are sent to Python
    criteria  criteria by which rows may be dropped; None: none may be
    workers   tasks at once
    """
    if at_rest is None:
        return "tasks"
    most = 1 if at_rest.in_memory else _COMPRESSED
    if at_rest.rows * most <= FEW and at_rest.bytes * most <= FEW_BYTES:
        return "one task"
    return "prefilter" if criteria is not None and _pays(at_rest, columns, criteria, workers) else "tasks"


def _pays(at_rest: RowsAtRest, columns: int, criteria: int, workers: int) -> bool:
    if at_rest.filtered and not at_rest.in_memory:
        return False
    share = SHARES[criteria - 1] if criteria <= len(SHARES) else 0.0
    each = at_rest.rows * 1e-9 / workers
    saved = share * each * _linear(SENT_NS, columns)
    return saved >= _MARGIN * (SAMPLE_SECONDS + each * _linear(COMPARED_NS, criteria))


def _linear(cost: tuple[float, float], number: int) -> float:
    return cost[0] + cost[1] * number
