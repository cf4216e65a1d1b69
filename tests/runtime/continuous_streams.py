"""Continuous skylines of small late streams, and what the definition and the eager algorithm say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.operators.fronts.test_row_front import eager_updates
from tests.runtime.streams import SECOND, AnySession, late_rows, read_batches

import skypane as sp
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan
from skypane.runtime import local
from skypane.types import Length
from skypane.windows import Windows

SCHEMA = late_rows(0, batches=1).pop().schema
WINDOW, EVERY = 50 * SECOND, 5 * SECOND
QUERY = ContinuousSkyline(sp.low("price") * sp.high("rating"), "ts", WINDOW, "sensor")
PLAN = ContinuousPlan(QUERY, Windows(EVERY, EVERY), "ts", sp.Watermark("20 seconds"))


def job_of(spark: AnySession, folder: Path, **options: Any) -> sp.Job:
    """Return the job over the batches in `folder`; `options` go before its own."""
    own: dict[str, Any] = {
        "time": "ts",
        "window": Length(WINDOW),
        "by": "sensor",
        "every": Length(EVERY),
        "progress": PLAN.progress,
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
        "late": folder / "late",
        "front": folder / "front",
    }
    return sp.continuous_skyline(read_batches(spark, folder / "in", SCHEMA), QUERY.preference, **own | options)


def plain(updates: pa.Table) -> list[tuple[int, str, int]]:
    """Return (time, action, id) of updates, in a canonical order; they must be in order of time, DEL before ADD."""
    columns = updates["action_time"].cast(pa.int64()), updates["action"], updates["id"]
    triples = list(zip(*(column.to_pylist() for column in columns), strict=True))
    keys = [(time, action == "ADD") for time, action, _ in triples]
    assert keys == sorted(keys), "updates come in order of time"
    return sorted(triples, key=lambda update: (update[0], update[1] == "ADD", update[2]))


def expected(events: Sequence[local.Event], plan: ContinuousPlan = PLAN) -> list[list[tuple[int, str, int]]]:
    """Return the updates that each event completes, by the definition."""
    outcomes = local.run_continuous(plan, events)
    return [[] if outcome.rows is None else plain(outcome.rows) for outcome in outcomes]


def late_ids(events: Sequence[local.Event], plan: ContinuousPlan = PLAN) -> list[int]:
    """Return the rows that are rejected, by their ids."""
    tables = [rows for outcome in local.run_continuous(plan, events) for rows in outcome.rejection.rows]
    return sorted(row for rows in tables for row in rows["id"].to_pylist())


def eager(batches: Iterable[pa.Table], rejected: Iterable[int], before: int) -> list[tuple[int, str, int]]:
    """Return the updates before a time, by the eager algorithm over all rows that were not rejected."""
    rows = pa.concat_tables(batches).combine_chunks()
    gone = set(rejected)
    rows = rows.filter(pa.array([row not in gone for row in rows["id"].to_pylist()]))
    return [update for update in eager_updates(QUERY, rows) if update[0] < before]


def front_of(updates: Iterable[tuple[int, str, int]]) -> list[int]:
    """Return the rows on the front after these updates; none may enter twice, or leave without being there."""
    there: Counter[int] = Counter()
    for _, action, row in updates:
        there[row] += 1 if action == "ADD" else -1
        assert there[row] in (0, 1)
    return sorted(row for row, n in there.items() if n)


def read_front(folder: Path) -> list[int]:
    """Return the rows that the folder of the current front holds."""
    return sorted(pq.read_table(folder / "front" / "front.parquet")["id"].to_pylist())
