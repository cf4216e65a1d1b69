"""Where chance comes from: one seed, and a stream of random numbers of its own for each part of a workload."""

from __future__ import annotations

from numpy.random import SFC64, Generator, SeedSequence


def generator(seed: int, part: int) -> Generator:
    """Return the random numbers of one numbered part of a workload.

    Parts are independent of each other: another delay moves the same tuples, and draws no other points.
    """
    return Generator(SFC64(SeedSequence(entropy=seed, spawn_key=(part,))))
