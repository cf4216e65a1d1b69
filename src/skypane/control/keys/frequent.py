"""The most frequent keys of a stream in little room: space-saving (Metwally et al. 2005), a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


@dataclass(frozen=True)
class Frequencies:
    """Counts of the keys that are kept, largest first, ties by key; how many were seen in all, and the largest error.

    A kept key came at least count - error times and at most count times; one that is not kept came at most error times.
    """

    keys: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: int = 0
    error: int = 0

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {"keys": self.keys.tolist(), "counts": self.counts.tolist(), "seen": self.seen, "error": self.error}

    @classmethod
    def restored(cls, value: Mapping[str, Any]) -> Frequencies:
        """Return the state whose snapshot() this is."""
        keys, counts = (np.array(value[name], np.int64) for name in ("keys", "counts"))
        return cls(keys, counts, int(value["seen"]), int(value["error"]))


@dataclass(frozen=True)
class SpaceSaving:
    """Keeps `room` keys; every key that comes more often than once in `room` is among them.

    Frozen; states are values. Sketches merge: each adds to a key that it does not keep what it may have missed of it.
    """

    room: int

    def __post_init__(self) -> None:
        if self.room < 1:
            raise ConfigError(f"need room for a key, got {self.room}")

    def init(self) -> Frequencies:
        """Return the state before the first key."""
        return Frequencies()

    def observe(self, state: Frequencies, keys: IntArray) -> Frequencies:
        """Return the state after more keys."""
        found, counts = np.unique(np.asarray(keys, np.int64), return_counts=True)
        return self.merge(state, Frequencies(found, counts, len(keys)))

    def merge(self, state: Frequencies, other: Frequencies) -> Frequencies:
        """Return what both have seen together."""
        keys = np.union1d(state.keys, other.keys)
        counts = _counts(state, keys) + _counts(other, keys)
        order = np.lexsort((keys, -counts))
        error = state.error + other.error
        if len(order) > self.room:
            error = max(error, int(counts[order[self.room]]))
            order = order[: self.room]
        return Frequencies(keys[order], counts[order], state.seen + other.seen, error)


def sub_keys(frequencies: Frequencies, most: int, nodes: int) -> dict[int, int]:
    """Return p for each of the `most` most frequent keys that is cut: its load in units of a node's fair share, rounded up.

    A key of a share f of all tuples, on n nodes, is cut into ceil(f n KEY_PARTS) parts: none is more than 1 / KEY_PARTS of
    what a node should have.
    """
    shares: FloatArray = frequencies.counts[:most] / max(1, frequencies.seen)
    parts = np.minimum(np.ceil(shares * nodes * KEY_PARTS), MOST_PARTS * nodes).astype(np.int64)
    return {key: part for key, part in zip(frequencies.keys[:most].tolist(), parts.tolist(), strict=True) if part > 1}


KEY_PARTS = 64
"""Parts that a key of a node's fair share is cut into."""
MOST_PARTS = 64
"""Parts per node that no key is cut beyond."""


def _counts(state: Frequencies, keys: IntArray) -> IntArray:
    """Return the counts of keys, sorted ones; of those that are not kept, what may have been missed."""
    counts = np.full(len(keys), state.error)
    counts[np.searchsorted(keys, state.keys)] = state.counts
    return counts
