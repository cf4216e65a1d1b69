"""Tuples of one source come in the order of their times."""

from __future__ import annotations

import numpy as np

from skypane.types import BadInputError, IntArray, Micros


def check_order(source: str, newest: Micros, times: IntArray) -> None:
    """Raise BadInputError, naming source and tuple, where time goes backwards; `newest` is that of the tuple before them."""
    before = np.concatenate([[newest], times])[:-1]
    back = np.flatnonzero(times < before)
    if len(back):
        at = back[0]
        raise backwards(source, int(at), times[at], before[at])


def backwards(source: str, at: int, time: Micros, before: Micros) -> BadInputError:
    """Return the error of a tuple that is older than the one before it."""
    return BadInputError(f"{source} goes backwards: tuple {at} is of time {time}, after one of time {before}")
