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
        raise BadInputError(
            f"{source} goes backwards: tuple {at} is of time {times[at]}, after one of time {before[at]}"
        )
