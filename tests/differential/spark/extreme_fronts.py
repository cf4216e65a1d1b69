"""Continuous skylines over the rows of extremes, which arrive in three batches: the front and its changes by a definition."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, functions
from tests.differential.definition import continuous
from tests.differential.definition.values import dense, plain

import skypane as sp

Changes: TypeAlias = set[tuple[int, int, int, int]]
"""When a row enters a front (1) or leaves it (-1): its case, its id, which of both, and the second."""

_WINDOW: Final = 3
_BATCHES: Final = ((0, 1), (2, 3, 4), (5, 6))
"""Rows of a case that arrive together, by id: one comes each second."""
_LAST: Final = 6
_WAIT: Final = 300.0


def changes(
    spark: SparkSession, frame: DataFrame, rows: pa.Table, target: Any, folder: Path
) -> Iterator[tuple[str, Changes, Changes]]:
    """Yield each way, the changes that it finds, and those that the definition has.

    rows    case, id, v, w, u, and ts, the same for all; the frame has the same rows
    target  a number to which v has distances; None: smaller values are better
    """
    first = "v MIN" if target is None else f"v AROUND {f'{target:f}' if isinstance(target, Decimal) else repr(target)}"
    preference, window = f"{first}, w MAX, u MIN", f"{_WINDOW} seconds"
    start, wanted = plain(rows["ts"])[0], _defined(rows, target)
    moving = frame.withColumn(
        "ts", functions.timestamp_micros(functions.unix_micros("ts") + functions.col("id") * 1_000_000)
    )
    history = sp.skyline_history(moving, preference, time="ts", window=window, by="case").toArrow()
    yield "static", _in(history, "front_from", start, 1) | _in(history, "front_to", start, -1), wanted
    for batch in _BATCHES:
        moving.where(functions.col("id").isin(*batch)).coalesce(1).write.mode("append").parquet(str(folder / "in"))
    arriving = spark.readStream.schema(moving.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    output = sp.Memory()
    job = sp.continuous_skyline(
        arriving, preference, time="ts", window=window, by="case", checkpoint=str(folder / "state"), output=output
    )
    handle = job.start(trigger="availableNow")
    handle.await_termination(_WAIT)
    handle.drain()
    updates = output.table()
    adds = pa.array(np.array(updates["action"].to_pylist()) == "ADD")
    emitted = _in(updates.filter(adds), "action_time", start, 1)
    emitted |= _in(updates.filter(pc.invert(adds)), "action_time", start, -1)
    yield "in a stream", emitted, {one for one in wanted if one[-1] <= _LAST}  # no time passes without rows


def _in(table: pa.Table, column: str, start: int, change: int) -> Changes:
    case, row, when = (plain(table[name]) for name in ("case", "id", column))
    return {(*key, change, (time - start) // 1_000_000) for *key, time in zip(case, row, when, strict=True)}


def _defined(rows: pa.Table, target: Any) -> Changes:
    case, row, v, w, u = (plain(rows[name]) for name in ("case", "id", "v", "w", "u"))
    away = v if target is None else [_distance(one, target) for one in v]
    points = np.column_stack([dense(away), -dense(w), dense(u)])
    starts, ends = continuous.stays(points, np.array(case), np.array(row), _WINDOW)
    on_front = np.flatnonzero(starts < ends).tolist()
    return {(case[at], row[at], change, int(when[at])) for at in on_front for change, when in ((1, starts), (-1, ends))}


def _distance(value: Any, target: Any) -> Any:
    return abs(value - target) if isinstance(value, float) else abs(Fraction(value) - Fraction(target))
