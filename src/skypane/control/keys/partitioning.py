"""Frequency-aware hash-based partitioning (paper 3, section 4.1): sub-keys of hot keys, round robin, on the ring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from skypane.control.keys.frequent import Frequencies, sub_keys
from skypane.control.keys.ring import HashRing
from skypane.kernels.hashing import mixed
from skypane.types import ConfigError, IntArray


@dataclass(frozen=True)
class KeyPlan:
    """Routing of tuples for a period; `parts` maps each split key to its number of parts."""

    ring: HashRing
    parts: Mapping[int, int] = field(default_factory=dict)

    def route(self, keys: IntArray) -> IntArray:
        """Return the node of each tuple by its key; tuples of a split key go to its parts in turn."""
        keys = np.asarray(keys, np.int64)
        if not self.parts:
            return self.ring.of(keys)
        hot = np.array(sorted(self.parts), np.int64)
        counts = np.array([self.parts[key] for key in hot.tolist()], np.int64)
        at = np.minimum(np.searchsorted(hot, keys), len(hot) - 1)
        cut = hot[at] == keys
        names = keys.copy()
        names[cut] = part_of(keys[cut], _occurrence(keys[cut]) % counts[at[cut]])
        return self.ring.of(names)


@dataclass(frozen=True)
class FrequencyAware:
    """Split the `most` most frequent keys of the last period; 0: consistent hashing only."""

    most: int = 100

    def __post_init__(self) -> None:
        if self.most < 0:
            raise ConfigError(f"most must be at least 0 keys, got {self.most}")

    def decide(self, frequencies: Frequencies, ring: HashRing) -> KeyPlan:
        """Return the plan for the next period."""
        return KeyPlan(ring, sub_keys(frequencies, self.most, len(ring.nodes)))


def part_of(keys: IntArray, parts: IntArray) -> IntArray:
    """Return the sub-keys of keys and part numbers; part 0 is the key itself."""
    return np.where(parts == 0, keys, mixed(keys) + parts)


def load_balance(nodes: IntArray, among: int) -> float:
    """Return the load-balancing ratio: standard deviation over mean of the tuples of nodes 0 to `among` - 1."""
    loads = np.bincount(nodes, minlength=among)[:among]
    return float(loads.std() / loads.mean()) if loads.sum() else 0.0


def _occurrence(keys: IntArray) -> IntArray:
    """Return the number of earlier tuples with the same key, for each tuple."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = (
        np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(keys) else np.zeros(0, np.int64)
    )
    lengths = np.diff(np.append(starts, len(keys)))
    earlier = np.empty(len(keys), np.int64)
    earlier[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return earlier
