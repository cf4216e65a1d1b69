"""The most frequent keys of a stream in bounded memory: space-saving (Metwally et al. 2005), updated by batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


@dataclass(frozen=True)
class Frequencies:
    """Counts of the kept keys, largest first, ties by key; the number of all keys seen, and the largest error.

    A kept key occurred at least count - error and at most count times; any other key occurred at most error times.
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
        """Return the state that snapshot() wrote."""
        keys, counts = (np.array(value[name], np.int64) for name in ("keys", "counts"))
        return cls(keys, counts, int(value["seen"]), int(value["error"]))


@dataclass(frozen=True)
class SpaceSaving:
    """Keep `room` keys, including every key with a share of more than 1 / `room` of all tuples.

    Frozen; states are values. Sketches can be merged: for a key that one of them does not keep, its error is added.
    """

    room: int

    def __post_init__(self) -> None:
        if self.room < 1:
            raise ConfigError(f"room must be at least 1 key, got {self.room}")

    def init(self) -> Frequencies:
        """Return the state before the first key."""
        return Frequencies()

    def observe(self, state: Frequencies, keys: IntArray) -> Frequencies:
        """Return the state after more keys."""
        found, counts = np.unique(np.asarray(keys, np.int64), return_counts=True)
        return self.merge(state, Frequencies(found, counts, len(keys)))

    def merge(self, state: Frequencies, other: Frequencies) -> Frequencies:
        """Return the state after the keys of both."""
        keys = np.union1d(state.keys, other.keys)
        counts = _counts(state, keys) + _counts(other, keys)
        order = np.lexsort((keys, -counts))
        error = state.error + other.error
        if len(order) > self.room:
            error = max(error, int(counts[order[self.room]]))
            order = order[: self.room]
        return Frequencies(keys[order], counts[order], state.seen + other.seen, error)


def sub_keys(frequencies: Frequencies, most: int, nodes: int) -> dict[int, int]:
    """Return the number of parts of each key that is split, among the `most` most frequent ones.

    A key with a share f of all tuples, on n nodes, is split into ceil(f n KEY_PARTS) parts, so that each part is at
    most 1 / KEY_PARTS of a node's fair share. The number of parts is at most MOST_PARTS n.
    """
    shares: FloatArray = frequencies.counts[:most] / max(1, frequencies.seen)
    parts = np.minimum(np.ceil(shares * nodes * KEY_PARTS), MOST_PARTS * nodes).astype(np.int64)
    return {key: part for key, part in zip(frequencies.keys[:most].tolist(), parts.tolist(), strict=True) if part > 1}


KEY_PARTS = 64
"""Parts of a key whose load is a node's fair share."""
MOST_PARTS = 64
"""Largest number of parts of a key, per node."""


def _counts(state: Frequencies, keys: IntArray) -> IntArray:
    """Return the counts of sorted keys; the error for keys that are not kept."""
    counts = np.full(len(keys), state.error)
    counts[np.searchsorted(keys, state.keys)] = state.counts
    return counts
