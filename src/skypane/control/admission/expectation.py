"""Rate expected from a stream's meta-data, which overrides the forecast (paper 3, sections 2.4 and 2.5).

The paper does not define how the ten characteristics become one number. Here it is the highest rate that they predict
for the next k periods, since a reader has to sustain all of them:

jump       the rate jumps to the other bound at the end of its phase; if that is unknown, the higher bound counts
trend      the rate follows the forecast and turns around at the bounds
bursts     a memoryless on/off process: the rate tends from its current value to its mean
expected   that rate; otherwise `max`, if only that is given
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from skypane import kernels
from skypane.control.admission.metadata import MetaData


def expectation(meta: MetaData, rates: Sequence[float], forecasts: Sequence[float], every: float) -> float | None:
    """Return the rate expected from the meta-data, or None if they do not determine one.

    rates       rates of the last periods, oldest first; empty for a new stream
    forecasts   rates forecast for the next k periods
    every       length of a period in seconds
    """
    if meta.transition == "jump" and meta.max is not None:
        return _jumping(meta, meta.max, rates, len(forecasts), every)
    if meta.transition == "trend" and rates:
        return max(_turned(rate, meta) for rate in forecasts)
    if meta.burst_peak is not None:
        return _bursting(meta, meta.burst_peak, rates, len(forecasts), every)
    return meta.max if meta.expected is None else meta.expected


def _jumping(meta: MetaData, highest: float, rates: Sequence[float], periods: int, every: float) -> float:
    phases, lowest = meta.phases, meta.min or 0.0
    if phases is None or not rates:
        return highest
    middle = (lowest + highest) / 2
    if rates[-1] > middle:
        # If the jump falls into the first period, part of that period still has the high rate.
        return highest
    low, _ = phases
    stayed = _trailing(rates, middle) * every
    return highest if stayed + periods * every > low or _trailing(rates, middle) == len(rates) else lowest


def _trailing(rates: Sequence[float], middle: float) -> int:
    """Return the number of last periods in which the rate was low."""
    return next((at for at, rate in enumerate(reversed(rates)) if rate > middle), len(rates))


def _turned(rate: float, meta: MetaData) -> float:
    """Return a forecast, reflected at the bounds if it lies beyond one."""
    lowest, highest = meta.min or 0.0, math.inf if meta.max is None else meta.max
    if rate > highest:
        rate = 2 * highest - rate
    elif rate < lowest:
        rate = 2 * lowest - rate
    return min(max(rate, lowest), highest)


def _bursting(meta: MetaData, peak: float, rates: Sequence[float], periods: int, every: float) -> float:
    """Return base + (peak - base) P(on) of a process with exponential on and off times."""
    base, share = meta.min or 0.0, 1.0 if meta.burst_percent is None else meta.burst_percent / 100
    is_on, period = share, meta.seconds("period")
    if rates and period is not None and 0 < share < 1:
        now = min(max((rates[-1] - base) / (peak - base), 0.0), 1.0) if peak > base else share
        relaxes = share * (1 - share) * period  # seconds: 1 / (1 / on + 1 / off)
        after = every if now > share else periods * every
        is_on = share + (now - share) * float(kernels.elementary.exp(-after / relaxes))
    return base + (peak - base) * is_on
