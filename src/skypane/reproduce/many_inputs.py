"""The six workloads of paper 3, section 6.1.1, and what a user who knows them would say of their streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from skypane.control.admission import MetaData
from skypane.runtime.sim.inputs import arrivals
from skypane.types import FloatArray
from skypane.workloads import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.sent import Fleet, until

LOW, HIGH, PERIOD, BURST = 20.0, 200.0, "2 minutes", "30 seconds"
"""Rates lie between the two (tuples per second); a fluctuation and its return; the mean of a burst, and of a pause."""
EVERY: Final = 10.0
"""Seconds of an optimisation period."""
TICK: Final = 0.5


def _fluctuating(shape: Literal["step", "trend"], total: Literal["constant", "varying"]) -> Callable[[], Fleet]:
    return lambda: FluctuatingFleet(LOW, HIGH, PERIOD, shape, total)


FLEETS: Final[dict[str, Callable[[], Fleet]]] = {
    "constw": lambda: ConstantFleet(LOW, HIGH),
    "psfcw": _fluctuating("step", "constant"),
    "ptfcw": _fluctuating("trend", "constant"),
    "sfvar": _fluctuating("step", "varying"),
    "tfvar": _fluctuating("trend", "varying"),
    "bursty": lambda: BurstyFleet(LOW + HIGH, BURST, BURST),
}


def rows(name: str, seconds: float, seed: int) -> FloatArray:
    """Return (ticks, streams) tuples of a workload."""
    fleet = FLEETS[name]()
    chunks = list(until(fleet.sent(np.random.default_rng(seed)), round(seconds * 1e6)))
    times, sources = (np.concatenate(column) for column in zip(*chunks, strict=True))
    return arrivals(times, sources, fleet.streams, seconds, TICK)


def said(name: str, came: FloatArray) -> list[MetaData]:
    """Return what is known of each stream beforehand: its bounds, its period, how it changes; or its bursts.

    Bounds are medians of the third of the periods with the lowest and the highest rates, so that they are the streams'
    own, not those of their noise.
    """
    if name == "bursty":
        return [MetaData(burst_percent=50, burst_peak=LOW + HIGH, period="1 minute")] * came.shape[1]
    ticks = round(EVERY / TICK)
    whole = came[: len(came) // ticks * ticks]
    rates = np.sort(whole.reshape(-1, ticks, came.shape[1]).sum(axis=1) / EVERY, axis=0)
    if name == "constw":
        return [MetaData(expected=float(rate)) for rate in rates.mean(axis=0)]
    part = max(1, len(rates) // (3 if name.endswith(("sfcw", "sfvar")) else 10))
    low, high = np.median(rates[:part], axis=0), np.median(rates[-part:], axis=0)
    transition: Literal["jump", "trend"] = "jump" if name in {"psfcw", "sfvar"} else "trend"
    return [
        MetaData(min=float(least), max=float(most), transition=transition, period=PERIOD)
        for least, most in zip(low, high, strict=True)
    ]
