"""What a stream must come to, by brute force over its rows: who is late, which windows there are, what is in their answers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
LENGTH, SLIDE, CONTINUOUS, SHORT = 50 * SECOND, 20 * SECOND, 5 * SECOND, 15 * SECOND
WITHIN, EVERY = 30 * SECOND, 15 * SECOND
SHARED = {"skyline": (LENGTH, SLIDE), "sums": (SHORT, SHORT)}
"""The queries of several over one stream, by name: length and slide of their windows."""
CHANGED = 4
"""The batch from which on a query that changes is another."""
REPAIRED = 5.0
"""The price of rows that had none, when they come again."""
AHEAD = 365 * 86_400 * SECOND
"""How far the clocks are ahead that are wrong: no stream pauses as long here, so all such rows are held, and a drain gives them up."""
START = 1_700_000_000 * SECOND
SIZE = 40
"""Rows of a batch, as they are drawn."""
Row = dict[str, Any]

SCHEMA = pa.schema([
    ("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("sensor", pa.string()),
    ("price", pa.float64()), ("rating", pa.float64()), ("weight", pa.int64()),
])  # fmt: skip


def rows(seed: int, batches: int, *, pause: float = 0, ahead: float = 0.008, blank: float = 0.01) -> pa.Table:
    """Rows in the order they come, up to 90 s late, with ties, without a time, without a number, some of long ago or far ahead.

    pause  seconds in which none come, in the middle
    ahead  the share of those that are far ahead
    blank  the share of those without a price
    """
    rng, count = np.random.default_rng(seed), batches * SIZE
    begin = START + np.arange(count) // SIZE * SLIDE
    begin += np.where(np.arange(count) < count // 2, 0, int(pause) * SECOND)
    times = begin + rng.integers(0, SLIDE, count) - np.minimum(rng.exponential(8 * SECOND, count), 90 * SECOND)
    times = np.where(rng.random(count) < 0.005, times - 400 * 86_400 * SECOND, times).astype(np.int64)
    times = np.where(rng.random(count) < ahead, times + AHEAD, times)
    price = np.where(rng.random(count) < 0.01, np.nan, rng.integers(0, 12, count).astype(float))
    columns = [
        np.arange(count),
        pa.array(times, pa.timestamp("us", "UTC"), mask=rng.random(count) < 0.005),
        pa.array(["a", "b", "c", None]).take(pa.array(rng.integers(0, 4, count))),
        pa.array(price, mask=rng.random(count) < blank),
        rng.integers(0, 12, count).astype(float),
        rng.integers(-3, 4, count),
    ]
    return pa.table(columns, schema=SCHEMA)


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a table, with times as microseconds."""
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.int64()))
    found: list[Any] = table.to_pylist()
    return found


@dataclass
class Taken:
    """The rows that enter, those that are late or far ahead, by batch, and why others do not."""

    entered: list[Row] = field(default_factory=list)
    by_batch: list[tuple[list[Row], int | None]] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)
    future: list[tuple[int, int]] = field(default_factory=list)
    quarantined: Counter[str] = field(default_factory=Counter)


def taken(batches: Iterable[tuple[Sequence[Row], int | None]], pane_end: Callable[[int], int]) -> Taken:
    """Sort rows into those that enter and those that do not; with each batch comes the punctuation after it."""
    emitted, punctuation = Taken(), None
    for number, (batch, after) in enumerate(batches):
        before = len(emitted.entered)
        for row in batch:
            reason = unusable(row) or ("future" if row["ts"] >= START + AHEAD // 2 else None)
            if reason is not None:
                emitted.quarantined[reason] += 1
                emitted.future += [(number, row["id"])] if reason == "future" else []
            elif punctuation is not None and pane_end(row["ts"]) <= punctuation:
                emitted.late.append((number, row["id"]))
            else:
                emitted.entered.append(row)
        punctuation = punctuation if after is None else after
        emitted.by_batch.append((emitted.entered[before:], punctuation))
    return emitted


def unusable(row: Row) -> str | None:
    """Why a row can be neither placed nor ranked, whatever the others are; None if it can."""
    if row["ts"] is None:
        return "null ts"
    if row["price"] is None:
        return "null price"
    return "NaN price" if math.isnan(row["price"]) else None


def pane_end(time: int, length: int = 10 * SECOND) -> int:
    """Windows of 50 s every 20 s are cut into panes of 10 s; those that do not overlap are panes."""
    return (time // length + 1) * length


def final(time: int) -> int:
    """When the first window that holds a row can no longer be amended."""
    return ((time - LENGTH) // SLIDE + 1) * SLIDE + LENGTH + WITHIN


def windows(
    entered: Iterable[Row], punctuation: float, length: int = LENGTH, slide: int = SLIDE
) -> dict[int, list[Row]]:
    """The rows of each window that is over, by its start."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in entered:
        for start in range(row["ts"] // slide * slide, row["ts"] - length, -slide):
            if start + length <= punctuation:
                found[start].append(row)
    return dict(found)


def versions(batches: Iterable[tuple[Sequence[Row], int | None]]) -> dict[int, list[list[Row]]]:
    """The rows of each version of each window, from the rows that have entered with each batch and the punctuation after it."""
    found: dict[int, list[list[Row]]] = defaultdict(list)
    rows: list[Row] = []
    for batch, punctuation in batches:
        rows += batch
        touched = windows(batch, math.inf)
        for start, inside in ({} if punctuation is None else windows(rows, punctuation)).items():
            if start in touched or start not in found:
                found[start].append(inside)
    return dict(found)


def early_versions(
    batches: Iterable[tuple[Sequence[Row], int | None]], every: int
) -> dict[int, list[tuple[bool, list[Row]]]]:
    """The versions of each window, and whether each is early, if open windows are answered whenever the newest row is `every` newer."""
    found: dict[int, list[tuple[bool, list[Row]]]] = defaultdict(list)
    rows: list[Row] = []
    last: int | None = None
    for batch, punctuation in batches:
        rows += batch
        touched = windows(batch, math.inf)
        ended = {} if punctuation is None else windows(rows, punctuation)
        for start, inside in ended.items():
            if start in touched or not found[start] or found[start][-1][0]:
                found[start].append((False, inside))
        newest = max((row["ts"] for row in rows), default=None)
        if newest is None or (last is not None and newest - last < every):
            continue
        last = newest
        for start, inside in windows(rows, math.inf).items():
            known = found[start][-1][1] if found[start] else []
            if start not in ended and start <= newest and len(known) < len(inside):
                found[start].append((True, inside))
    return {start: each for start, each in found.items() if each}


def better(one: Row, other: Row) -> bool:
    """Low price, high rating, within a sensor."""
    key, rival = (one["price"], -one["rating"]), (other["price"], -other["rating"])
    return bool(one["sensor"] == other["sensor"] and key != rival and key[0] <= rival[0] and key[1] <= rival[1])


def skyline(found: Sequence[Row]) -> Sequence[Hashable]:
    return sorted(row["id"] for row in found if not any(better(rival, row) for rival in found))


def sums(found: Sequence[Row]) -> Sequence[Hashable]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in found:
        groups[row["sensor"]].append(row)
    return sorted(
        ((str(sensor), len(group), sum(r["weight"] for r in group), min(r["price"] for r in group))
         for sensor, group in groups.items()),
    )  # fmt: skip


def updates(entered: Sequence[Row], clock: int) -> Sequence[Hashable]:
    """When each row comes to the front and leaves it: from the last better one before it is over, to the first after it."""
    emitted: list[tuple[int, str, int]] = []
    for row in entered:
        rivals = [one["ts"] for one in entered if abs(one["ts"] - row["ts"]) < LENGTH and better(one, row)]
        begin = max([row["ts"], *(time + LENGTH for time in rivals if time <= row["ts"])])
        end = min([row["ts"] + LENGTH, *(time for time in rivals if time > row["ts"])])
        emitted += [(begin, "ADD", row["id"]), (end, "DEL", row["id"])] if begin < end else []
    return sorted(update for update in emitted if update[0] < clock)
