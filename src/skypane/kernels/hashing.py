"""64-bit hashes that are the same in every process and on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.types import IntArray


@kernel
def hash_bytes(data: NDArray[np.uint8], edges: IntArray) -> IntArray:
    """Return the FNV-1a hash of each text; text i is data[edges[i]:edges[i + 1]]."""
    hashes = np.empty(max(edges.size - 1, 0), np.int64)
    for text in range(hashes.size):
        value = np.uint64(14_695_981_039_346_656_037)
        for at in range(edges[text], edges[text + 1]):
            value = (value ^ np.uint64(data[at])) * np.uint64(1_099_511_628_211)
        hashes[text] = np.int64(value)
    return hashes


def mixed(keys: IntArray) -> IntArray:
    """Return a bijective mix of the keys that spreads them evenly over 64 bits (the finaliser of SplitMix64)."""
    bits = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)
