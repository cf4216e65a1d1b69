"""Check that the tuples of a source are in time order."""

from __future__ import annotations

import numpy as np

from skypane.types import BadInputError, IntArray, Micros


def check_order(source: str, newest: Micros, times: IntArray) -> None:
    """Raise BadInputError, which names source and tuple, if time goes backwards; `newest` is the time before."""
    before = np.concatenate([[newest], times])[:-1]
    back = np.flatnonzero(times < before)
    if len(back):
        at = back[0]
        raise backwards(source, int(at), times[at], before[at])


def backwards(source: str, at: int, time: Micros, before: Micros) -> BadInputError:
    """Return the error of a tuple that is older than the one before it."""
    return BadInputError(f"{source} goes backwards: tuple {at} has time {time} after time {before}")
