"""Updates of a front: which row enters or leaves it, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skypane.types import ConfigError, IntArray, Micros

ADD: Final = 1
DEL: Final = -1

LONGEST: Final[Micros] = 100 * 366 * 86_400_000_000
"""The longest window, a hundred years; no sum of a time and a window overflows."""


def check_window(window: Micros) -> Micros:
    """Return `window`; raise ConfigError if a window cannot have that length."""
    if not 0 < window <= LONGEST:
        raise ConfigError(f"window must be longer than 0 and at most 100 years, got {window} microseconds")
    return window


class Updates(NamedTuple):
    """Changes of a front, (n,) each, in the order that the docstring of the package defines."""

    times: IntArray
    actions: NDArray[np.int8]  # ADD or DEL
    rows: IntArray

    @classmethod
    def of_stays(cls, rows: IntArray, starts: IntArray, ends: IntArray, span: tuple[Micros, Micros]) -> Self:
        """Return the updates of stays [start, end) in [span[0], span[1]), in any order; empty stays have none."""
        low, high = span
        real = starts < ends
        enter = real & (low <= starts) & (starts < high)
        leave = real & (low <= ends) & (ends < high)
        return cls(
            np.concatenate([starts[enter], ends[leave]]),
            np.repeat(np.array([ADD, DEL], np.int8), [np.count_nonzero(enter), np.count_nonzero(leave)]),
            np.concatenate([rows[enter], rows[leave]]),
        )

    @classmethod
    def merged(cls, parts: Sequence[Updates]) -> Self:
        """Return the updates of all parts, at least one, in order."""
        times, actions, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((rows, actions, times))
        return cls(times[order], actions[order], rows[order])
