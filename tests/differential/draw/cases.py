"""A case from a seed: the same seed, the same case, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tests.differential.case import SOURCE, Case, IntArray, Policy, Spec, Windows
from tests.differential.draw import queries, rows, times

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
    n, asks = _size(rng, kind), str(rng.choice(KINDS[:5])) if kind == "progress" else kind
    blocks = kind == "continuous" and n >= _BLOCKS and rng.random() < 0.6
    some = rows.rows(rng, n, asks, blocks=blocks, in_order=kind != "progress")
    spec, windows = _spec(rng, some, asks, blocks=blocks)
    return Case(
        seed=seed,
        kind=kind,
        rows=some.rows.take(pa.array(some.coming.arrival)),
        spec=spec,
        windows=windows,
        policy=_policy(rng, some, windows) if kind == "progress" else _total(rng, some, windows),
        batch=_batches(rng, some),
        drains=tuple(sorted({int(one) for one in rng.integers(0, 6, 2)})) if kind == "progress" else (),
        chance=int(rng.integers(2**31)),
        ways=(*_ways(rng, WAYS.get(kind, WAYS["windowed"])), *_law(rng, kind)),
    )


def _batches(rng: Rng, some: rows.Drawn) -> IntArray:
    """Return the batch of each row: where parts have changed places most often one for each."""
    if some.coming.in_parts and rng.random() < 0.8:
        return times.stretches(some.coming.times[some.coming.arrival])
    return times.batches(rng, some.rows.num_rows)


def _spec(rng: Rng, some: rows.Drawn, kind: str, *, blocks: bool) -> tuple[Spec, Windows]:
    span = max(1, _span(some))
    windows = times.windows(rng, some.coming.times, _most_windows(rng, kind, some.rows.num_rows))
    if some.coming.in_parts and rng.random() < 0.7:  # each part has some
        length = max(1, span // (times.PARTS * int(rng.choice([1, 2, 4]))))
        windows = Windows(length, max(1, length // int(rng.choice([1, 1, 2]))), windows.offset)
    if kind == "continuous":
        windows = Windows(windows.length, windows.length, windows.offset)
    if blocks:
        return queries.over_blocks(rng, some.kinds, some.by, span), windows
    return queries.spec(rng, kind, some.rows, some.kinds, some.by, span), windows


def _span(some: rows.Drawn) -> int:
    return int(np.ptp(some.coming.times)) if some.rows.num_rows else 1


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


def _total(rng: Rng, some: rows.Drawn, windows: Windows) -> Policy:
    """A punctuation so far behind that no row is late; or one that waits for each source."""
    if some.by_sources:
        return Policy("Readiness", (("idle_after", 1), ("sources", ("s0", "s1", "s2")), ("max_ahead", None)))
    delay = some.coming.lag + int(rng.choice([0, 0, 1, windows.length]))
    return Policy("Watermark", (("delay", delay), ("max_ahead", None)))


def _policy(rng: Rng, some: rows.Drawn, windows: Windows) -> Policy:
    """Any policy, as tight as it comes: rows are late, too far ahead, abandoned. Where delays repeat, most often one that learns them."""
    if some.coming.in_parts and rng.random() < 0.6:
        return Policy("KSlack", (("max_slack", None), ("max_ahead", None)), total=False)
    span = _span(some)
    length = int(rng.choice([0, 1, windows.slide, span // 10, span, 86_400_000_000]))
    ahead = None if rng.random() < 0.4 else max(1, int(rng.choice([1, span // 20, span // 3, 2 * span])))
    numbers: dict[str, Any] = {"max_ahead": ahead}
    if rng.random() < 0.7:
        numbers |= {"support": int(rng.choice([1, 2, 3, 8, 32])), "patience": int(rng.choice([1, 5, 20, 10_000]))}
    words = ["Watermark", "KSlack", "AqKSlack", *(["Readiness"] if SOURCE in some.rows.column_names else [])]
    word = str(rng.choice(words))
    if word == "Watermark":
        numbers |= {"delay": length, "behind": bool(rng.random() < 0.3)}
    elif word == "Readiness":
        numbers |= {"idle_after": int(rng.choice([1, 2, 9])), "max_behind": length}
        numbers |= {"sources": ("s0", "s1", "s2") if rng.random() < 0.3 else ()}
    else:
        numbers |= {"max_slack": None if rng.random() < 0.5 else length}
        numbers |= {"max_drop": float(rng.choice([0.001, 0.05, 0.5]))} if word == "AqKSlack" else {}
    return Policy(word, tuple(numbers.items()), total=False)
