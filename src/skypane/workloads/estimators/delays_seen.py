"""Delays and disorder of arrivals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.argument_checks import SECOND


def delay_quantiles(times: IntArray, arrivals: IntArray, shares: Sequence[float]) -> FloatArray:
    """Return the quantiles of the delays at `shares`, in seconds; 0 is the shortest delay, 1 the longest.

    Quantiles are interpolated linearly between neighbouring delays. `times`, `arrivals`: (n,) microseconds.
    """
    if not len(times):
        raise ConfigError("need at least one tuple for a quantile of delays, got none")
    return np.asarray(np.quantile(arrivals - times, shares) / SECOND)


def late_share(times: IntArray) -> float:
    """Return the share of tuples that arrive after one with a later event time; `times` are in the order of arrival.

    This is paper 1's late arrival (section 4.3.2). It measures disorder, whether or not a policy would drop the tuple.
    """
    if not len(times):
        return 0.0
    return float(np.mean(times < np.maximum.accumulate(times)))
