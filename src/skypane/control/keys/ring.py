"""Consistent hashing: keys and nodes lie on one ring of 64-bit hashes; a key belongs to the next node on the ring.

Each node is on the ring many times (virtual nodes), which evens out the shares of the nodes: with v places a node's
share varies by about 1 / sqrt(v). When a node is added or removed, only the keys on its own arcs move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skypane.kernels.hashing import mixed
from skypane.types import ConfigError, IntArray

PLACES = 256
"""Places of a node on the ring, with which its share varies by about 6 %."""


@dataclass(frozen=True)
class HashRing:
    """A ring of numbered nodes."""

    nodes: tuple[int, ...]
    places: int = PLACES

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(sorted(set(self.nodes))))
        if not self.nodes or self.places < 1:
            raise ConfigError(f"need a node and at least 1 place for it, got nodes={self.nodes}, places={self.places}")

    def of(self, keys: IntArray) -> IntArray:
        """Return the node of each key; keys are arbitrary 64-bit integers."""
        edges, owners = self._arcs
        after = np.searchsorted(edges, mixed(mixed(np.asarray(keys, np.int64))), side="left")
        return owners[after % len(owners)]

    @cached_property
    def _arcs(self) -> tuple[IntArray, IntArray]:
        owners = np.repeat(np.array(self.nodes, np.int64), self.places)
        numbers = np.tile(np.arange(self.places), len(self.nodes))
        hashes = mixed((owners << 32) + numbers)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], owners[order]


def basic(keys: IntArray, nodes: int) -> IntArray:
    """Return the node of each key by basic hashing, hash(key) mod nodes, for comparison."""
    return mixed(np.asarray(keys, np.int64)) % nodes
