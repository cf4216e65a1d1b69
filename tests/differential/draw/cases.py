"""A case from a seed: the same seed, the same case, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, SOURCE, TIME, Case, Continuous, IntArray, Policy, Windows
from tests.differential.draw import queries, times, values

Rng = np.random.Generator

KINDS: Final = ("skyline", "top_k", "k_dominant", "top_delta", "aggregate", "continuous", "progress")
_OFTEN: Final = (0.20, 0.10, 0.08, 0.07, 0.15, 0.30, 0.10)
_EDGES: Final = np.cumsum(_OFTEN)

_SIZES: Final = ((0, 4), (4, 40), (40, 200), (500, 530), (600, 1_900), (4_000, 6_000), (50_000, 50_001))
_SIZES_OFTEN: Final = (0.05, 0.67, 0.20, 0.035, 0.04, 0.0045, 0.0005)
_SIZES_OFTEN_CONTINUOUS: Final = (0.05, 0.60, 0.17, 0.02, 0.15, 0.01, 0.0)
"""A front is cut into blocks of 512 points, through which later ones come: what is wrong between blocks needs two of them."""
_BLOCKS: Final = 1_100

WAYS: Final = {
    "windowed": ("local", "tree", "worker", "queue", "batch"),
    "continuous": ("local", "rows", "front", "shards", "points"),
    "progress": ("local", "restarts"),
}

_NEVER_LATE: Final = ("order in a batch", "cut")
_BY_ORDER: Final = (*_NEVER_LATE, "monotone", "later", "groups apart")
LAWS: Final = {
    "skyline": (*_BY_ORDER, "copies"),
    "top_k": (*_NEVER_LATE, "groups apart"),
    "k_dominant": (*_BY_ORDER, "copies", "special cases"),
    "top_delta": (*_BY_ORDER, "special cases"),
    "aggregate": (*_NEVER_LATE, "duckdb"),
    "continuous": (*_BY_ORDER, "fronts at window ends"),
    "progress": ("order in a batch",),
}
"""The laws (laws.py) that say something of a kind of case; "duckdb" holds the definition against a peer's answer (peer.py)."""


def kind_of(seed: int) -> str:
    """Return the kind of the case of a seed, at next to no cost."""
    return KINDS[int(np.searchsorted(_EDGES, np.random.default_rng([seed, 1]).random() * _EDGES[-1], "right"))]


def drawn(seed: int) -> Case:
    """Return the case of a seed."""
    rng, kind = np.random.default_rng([seed, 2]), kind_of(seed)
    n = _size(rng, kind)
    how = times.coming(rng, n)
    asked_kind = str(rng.choice(KINDS[:5])) if kind == "progress" else kind
    by = _by(rng, n)
    blocks = kind == "continuous" and n >= _BLOCKS and rng.random() < 0.6
    columns, kinds = _columns(rng, how.times, by, asked_kind, blocks=blocks)
    rows = pa.table(columns)
    rows = rows.append_column(ID, pa.array(np.arange(n)))
    policy = None
    if SOURCE in rows.column_names and kind != "progress" and rng.random() < 0.4:
        sources = np.array([int(name[1:]) for name in rows.column(SOURCE).to_pylist()], np.int64)
        how = how._replace(arrival=times.by_sources(rng, how.times, sources))
        policy = Policy("Readiness", (("idle_after", 10**15), ("sources", ("s0", "s1", "s2")), ("max_ahead", None)))
    if asked_kind != "continuous" and n and rng.random() < 0.3:
        rows, how = _with_copies(rng, rows, how)
    span = int(np.ptp(how.times)) if n else 1
    over = queries.over_blocks(rng, kinds, tuple(by), span) if blocks else None
    asked = over or queries.asked(rng, asked_kind, rows, kinds, tuple(by), max(1, span))
    windows = times.windows(rng, how.times, _most_windows(rng, asked_kind, n))
    if isinstance(asked, Continuous):
        windows = Windows(windows.length, windows.length, windows.offset)
    rows = rows.take(pa.array(how.arrival))
    return Case(
        seed=seed,
        kind=kind,
        rows=rows,
        asked=asked,
        windows=windows,
        policy=policy or (_policy(rng, rows, span, windows) if kind == "progress" else _total(rng, how.lag, windows)),
        batch=times.batches(rng, rows.num_rows),
        drains=tuple(sorted({int(one) for one in rng.integers(0, 6, 2)})) if kind == "progress" else (),
        chance=int(rng.integers(2**31)),
        ways=(*_ways(rng, WAYS.get(kind, WAYS["windowed"])), *_law(rng, kind)),
    )


def _size(rng: Rng, kind: str) -> int:
    often = _SIZES_OFTEN_CONTINUOUS if kind == "continuous" else _SIZES_OFTEN
    low, high = _SIZES[int(rng.choice(len(_SIZES), p=often))]
    if kind in ("progress", "aggregate"):
        high, low = min(high, 600), min(low, 500)
    if kind in ("continuous", "k_dominant", "top_delta"):
        high, low = min(high, 6_000), min(low, 4_000)
    return int(rng.integers(low, high))


def _most_windows(rng: Rng, kind: str, n: int) -> int:
    """Return how many windows there may be: each costs about as much as a case, of aggregates more."""
    if n > 200:
        return int(rng.choice([5, 12]))
    return int(rng.choice([2, 5, 5, 10, 20] if kind == "aggregate" and rng.random() < 0.9 else [2, 5, 5, 10, 40, 150]))


def _ways(rng: Rng, names: Sequence[str]) -> tuple[str, ...]:
    """Return two of the ways, or all there are."""
    return tuple(sorted(rng.choice(names, min(2, len(names)), replace=False).tolist()))


def _law(rng: Rng, kind: str) -> tuple[str, ...]:
    """Return a law to try at times, or none."""
    return (str(rng.choice(list(LAWS[kind]))),) if rng.random() < 0.12 else ()


def _total(rng: Rng, lag: int, windows: Windows) -> Policy:
    """A punctuation so far behind that no row is late."""
    delay = lag + int(rng.choice([0, 0, 1, windows.length]))
    return Policy("Watermark", (("delay", delay), ("max_ahead", None)))


def _policy(rng: Rng, rows: pa.Table, span: int, windows: Windows) -> Policy:
    """Any policy, as tight as it comes: rows are late, too far ahead, given up."""
    length = int(rng.choice([0, 1, windows.slide, span // 10, span, 86_400_000_000]))
    ahead = None if rng.random() < 0.4 else max(1, int(rng.choice([1, span // 20, span // 3, 2 * span])))
    numbers: dict[str, Any] = {"max_ahead": ahead}
    if rng.random() < 0.5:
        numbers |= {"support": int(rng.choice([1, 3, 32])), "patience": int(rng.choice([1, 5, 10_000]))}
    words = ["Watermark", "KSlack", "AqKSlack", *(["Readiness"] if SOURCE in rows.column_names else [])]
    word = str(rng.choice(words))
    if word == "Watermark":
        numbers |= {"delay": length, "behind": bool(rng.random() < 0.3)}
    elif word == "Readiness":
        numbers |= {"idle_after": max(1, length), "sources": ("s0", "s1", "s2") if rng.random() < 0.3 else ()}
    else:
        numbers |= {"max_slack": None if rng.random() < 0.5 else length}
        numbers |= {"max_drop": float(rng.choice([0.001, 0.05, 0.5]))} if word == "AqKSlack" else {}
    return Policy(word, tuple(numbers.items()), total=False)


def _by(rng: Rng, n: int) -> dict[str, pa.Array]:
    """Return the columns that may form groups: none, few, many, skewed ones, with nulls."""
    count = int(rng.choice([0, 0, 0, 1, 1, 2]))
    return {f"g{number}": _keys(rng, n) for number in range(count)}


def _keys(rng: Rng, n: int) -> pa.Array:
    style = rng.integers(6)
    few = rng.integers(0, int(rng.choice([1, 2, 3, 6])), n)
    if style == 0:
        return pa.array(few)
    if style == 1:
        return pa.array([["a", "b", None, "", "ä", "zz"][one] for one in few.tolist()], pa.string())
    if style == 2:
        return pa.array([[0.0, -0.0, float("nan"), None, 1.5, float("inf")][one] for one in few.tolist()], pa.float64())
    if style == 3:
        return pa.array(np.minimum(rng.zipf(1.6, n), 1_000).astype(np.int32))
    if style == 4:
        return pa.array(few % 2 == 0)
    return pa.array(rng.integers(0, max(1, n // 2), n))


def _columns(
    rng: Rng, when: IntArray, by: dict[str, pa.Array], kind: str, *, blocks: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the columns of rows in order of time, and the kinds of those that may be ranked."""
    n = len(when)
    d = int(rng.choice([3, 4, 4, 6] if blocks else [1, 2, 2, 3, 3, 4, 5, 8]))
    kinds = ["double"] * d if blocks else values.kinds(rng, d, n)
    points = values.improving(rng, n, d) if blocks else values.points(rng, n, d)
    gaps = not blocks and rng.random() < (0.6 if kind == "aggregate" else 0.2)
    columns: dict[str, Any] = {TIME: _times(rng, when)}
    if rng.random() < 0.3:
        columns[SOURCE] = pa.array([f"s{one}" for one in rng.integers(0, 3, n).tolist()], pa.string())
    columns |= by
    for j, one in enumerate(kinds):
        column = values.column(rng, points[:, j], one)
        columns[f"c{j}"] = values.with_gaps(rng, column, float(rng.choice([0.02, 0.2]))) if gaps else column
    if kind == "aggregate" or rng.random() < 0.2:
        columns["word"] = pa.array(rng.choice(np.array(["a", "b", "zz", "", None], object), n).tolist(), pa.string())
    if n <= 2_000 and kind != "aggregate":
        columns |= _passengers(rng, n)
    return columns, {f"c{j}": one for j, one in enumerate(kinds)}


def _times(rng: Rng, when: IntArray) -> pa.Array:
    column = pa.array(when).cast(pa.timestamp("us", "UTC" if rng.random() < 0.7 else None))
    if len(when) and rng.random() < 0.05:
        return values.with_gaps(rng, column, 0.1)
    return column


def _passengers(rng: Rng, n: int) -> dict[str, Any]:
    """Columns that only pass through."""
    found: dict[str, Any] = {}
    few = rng.integers(0, 3, n).tolist()
    if rng.random() < 0.25:
        found["record"] = pa.array([{"a": "x" * one, "b": [one, None]} if one else None for one in few],
                                   pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]))  # fmt: skip
    if rng.random() < 0.25:
        found["list"] = pa.array([[1.5, None][:one] if one else None for one in few], pa.list_(pa.float64()))
    if rng.random() < 0.1:
        found["rare"] = pa.array([[None, -0.0, float("nan")][one] for one in few], pa.float64())
    return found


def _with_copies(rng: Rng, rows: pa.Table, how: times.Coming) -> tuple[pa.Table, times.Coming]:
    """Return the rows with some of them twice, or more often."""
    n = rows.num_rows
    again = np.sort(np.concatenate([np.arange(n), rng.integers(0, n, int(rng.integers(1, min(n, 20) + 1)))]))
    arrival = np.argsort(np.argsort(how.arrival, kind="stable")[again], kind="stable")
    return rows.take(pa.array(again)), times.Coming(how.times[again], arrival, how.lag)
