"""The share of skyline points, which determines the cost of a preference query."""

from __future__ import annotations

from skypane.kernels import skyline_indices
from skypane.types import FloatArray


def skyline_share(points: FloatArray) -> float:
    """Return the share of (n, d) points that no other point dominates, 0 without points; smaller is better."""
    return len(skyline_indices(points)) / len(points) if len(points) else 0.0
