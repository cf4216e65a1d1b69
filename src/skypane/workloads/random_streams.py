"""Random numbers of workloads: one seed, from which each part of a workload derives an independent generator."""

from __future__ import annotations

from numpy.random import SFC64, Generator, SeedSequence


def generator(seed: int, part: int) -> Generator:
    """Return the random number generator of one numbered part of a workload.

    Parts are independent of each other: other delays apply to the same tuples and leave their points unchanged.
    """
    return Generator(SFC64(SeedSequence(entropy=seed, spawn_key=(part,))))
