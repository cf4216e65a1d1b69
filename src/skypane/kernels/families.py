"""The names of the families of kernels: those of a family are needed by the same queries, and compiled together.

They stand apart from the kernels, because a process that only describes a query does not load Numba.
"""

from typing import Final

SKYLINES: Final = "skylines"
FRONTS: Final = "fronts"
DOMINANCE: Final = "dominance"
AGGREGATES: Final = "aggregates"
SCORES: Final = "scores"

EVERY: Final = (SKYLINES, FRONTS, DOMINANCE, AGGREGATES, SCORES)
