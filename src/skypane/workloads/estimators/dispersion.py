"""The index of dispersion by counts: the limit of Var(N_t) / E(N_t) as intervals of length t grow.

It is 1 for Poisson arrivals and thousands for severe bursts. The estimate follows paper 1, section 6.1 (after R.
Gusella, "Characterizing the variability of arrival processes with indexes of dispersion", IEEE JSAC 9(2), 1991): count
in consecutive intervals, lengthen them, and stop as soon as the ratio no longer changes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.argument_checks import SECOND
from skypane.workloads.estimators.counts import counts, growing, summed

_FIRST: Final = 50
"""Mean tuples per shortest interval: at small counts every process resembles Poisson and would seem stable."""

_PLATEAU: Final = 4
"""Number of consecutive interval lengths, each 1.5 times the one before, whose ratios must agree."""


class Dispersion(NamedTuple):
    """An index of dispersion: the estimate, the interval at which it is stable, and the curve over interval lengths.

    `value` is the ratio at the longest interval, of `seconds`. `stable` is False if the ratio still changed when too
    few intervals were left: the true index (a self-similar stream has none) then lies further in the direction of
    `trend`.
    """

    value: float
    seconds: float
    stable: bool
    intervals: FloatArray
    ratios: FloatArray

    @property
    def trend(self) -> int:
        """The direction of the ratio as intervals grow: 1 up, -1 down, 0 if it is stable or fluctuates."""
        last = self.ratios[-_PLATEAU:]
        if self.stable or abs(last[-1] - last[0]) < np.ptp(last) / 2:
            return 0
        return int(np.sign(last[-1] - last[0]))


def dispersion(times: IntArray, *, tolerance: float = 0.1, least_intervals: int = 50) -> Dispersion:
    """Return the index of dispersion of arrivals at `times`, ascending microseconds.

    `tolerance`: largest range of the ratios of a plateau, relative to their mean; `least_intervals`: number of
    intervals that each ratio needs.
    """
    if len(times) < 2 or times[-1] <= times[0]:
        raise ConfigError(f"need arrivals at two times or more to estimate dispersion, got {len(times)} arrivals")
    slot = max(1, round(_FIRST * int(times[-1] - times[0]) / (len(times) - 1)))
    return dispersion_of_counts(
        counts(times, slot), slot / SECOND, tolerance=tolerance, least_intervals=least_intervals
    )


def dispersion_of_counts(
    series: IntArray | FloatArray, seconds: float, *, tolerance: float = 0.1, least_intervals: int = 50
) -> Dispersion:
    """Return the index of dispersion of counts per interval of `seconds` seconds; options as in dispersion()."""
    sizes = growing(len(series) // least_intervals)
    if not sizes or not np.sum(series):
        raise ConfigError(
            f"need counts of {least_intervals} intervals or more, not all 0, to estimate dispersion, got {len(series)}"
        )
    ratios = np.array([_ratio(summed(series, size)) for size in sizes])
    intervals = np.array(sizes) * seconds
    for end in range(_PLATEAU, len(sizes) + 1):
        plateau = ratios[end - _PLATEAU : end]
        if np.ptp(plateau) <= tolerance * plateau.mean():
            return _up_to(intervals, ratios, end, stable=True)
    return _up_to(intervals, ratios, len(sizes), stable=False)


def _up_to(intervals: FloatArray, ratios: FloatArray, end: int, *, stable: bool) -> Dispersion:
    return Dispersion(float(ratios[end - 1]), float(intervals[end - 1]), stable, intervals, ratios)


def _ratio(sums: FloatArray) -> float:
    return float(np.var(sums, ddof=1) / np.mean(sums)) if len(sums) > 1 else 0.0
