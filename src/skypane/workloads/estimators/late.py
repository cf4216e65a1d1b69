"""The share of late arrivals."""

from __future__ import annotations

import numpy as np

from skypane.types import IntArray


def late_share(times: IntArray) -> float:
    """Return the share of tuples that arrive after one with a later event time; `times` are in the order of arrival.

    This is paper 1's late arrival (section 4.3.2). It measures disorder, whether or not a policy would drop the tuple.
    """
    if not len(times):
        return 0.0
    return float(np.mean(times < np.maximum.accumulate(times)))
