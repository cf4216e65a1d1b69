"""Plates of the delays, from the event time of a tuple to its arrival."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from measure.workload_gallery.plate import BLUE, GREEN, GREY, RED, Panel, Plate, Row
from skypane.types import FloatArray, IntArray
from skypane.workloads import EmpiricalDelay, ExponentialDelay, HeldBack, LognormalDelay, ParetoDelay, UniformDelay
from skypane.workloads.disorder.delays import Delays
from skypane.workloads.stream import generator

SEED = 7
_TUPLES = 200_000
_COLOURS = (BLUE, RED, GREEN)
#: number of points of a line
_POINTS = 60


def plates() -> list[Plate]:
    """Return the plates of all delays."""
    return [_laws(), _held()]


def delayed(delays: Delays, seconds: float, tuples: int = _TUPLES) -> tuple[IntArray, IntArray]:
    """Return event times, even over `seconds`, and arrival times, both in microseconds, in the order of events."""
    times = np.linspace(0, seconds * 1e6, tuples, endpoint=False).astype(np.int64)
    return times, times + delays.start(1, generator(SEED, 0))(times, np.zeros(tuples, np.int64))


def survival(laws: Mapping[str, Delays], axes: Axes) -> None:
    """Draw, for each law, the share of tuples that are later than so many milliseconds."""
    for colour, (name, law) in zip(_COLOURS, laws.items(), strict=False):
        times, arrivals = delayed(law, 60)
        delay = np.sort(arrivals - times) / 1e3
        later = np.geomspace(1 / len(delay), 1, _POINTS)
        axes.plot(delay[((1 - later) * len(delay)).astype(np.int64)], later, color=colour, label=name, linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, 1e5)
    axes.legend(loc="lower left", handlelength=1.2)


def _laws() -> Plate:
    measured = (2_000,) * 90 + (40_000,) * 9 + (900_000,)
    panels: dict[str, dict[str, Delays]] = {
        "UniformDelay(mean)": {name: UniformDelay(name) for name in ("10 ms", "100 ms", "1 second")},
        "ExponentialDelay(mean)": {name: ExponentialDelay(name) for name in ("10 ms", "100 ms", "1 second")},
        "EmpiricalDelay(measured)": {"90 x 2 ms, 9 x 40 ms, 900 ms": EmpiricalDelay(measured)},
        'ParetoDelay("100 ms", tail)': {f"tail = {tail}": ParetoDelay("100 ms", tail) for tail in (1.2, 2.5, 8)},
        'LognormalDelay("100 ms", sigma)': {f"sigma = {s}": LognormalDelay("100 ms", s) for s in (0.5, 1, 2)},
        "LognormalDelay(median), sigma 1": {name: LognormalDelay(name) for name in ("10 ms", "100 ms", "1 second")},
    }
    drawn = [Panel(name, partial(survival, laws)) for name, laws in panels.items()]
    text = (
        "The share of tuples (up) that come later than so long (right); both scales are logarithmic. `UniformDelay`: uniform "
        "from 0 to twice `mean` (papers 1 and 5). `ExponentialDelay`: `mean`. `EmpiricalDelay` draws from `measured` delays. "
        "`ParetoDelay`: `mean`, and `tail`; the smaller, the heavier. `LognormalDelay`: `median`, and `sigma` of the logarithm."
    )
    rows = [Row(part, "delay, ms", "share later", from_zero=False) for part in (drawn[:3], drawn[3:])]
    return Plate("delays", "Delays", text, rows)


def arrivals_per_second(law: Delays, axes: Axes) -> None:
    """Draw how many of 1,000 tuples per second, sent evenly, arrive in each half second, and how many happen."""
    seconds, slot = 60.0, 0.5
    _, arrivals = delayed(law, seconds, 60_000)
    edges = np.arange(0, seconds + slot, slot)
    found: FloatArray = np.histogram(arrivals / 1e6, edges)[0] / slot
    axes.stairs(found, edges, fill=True, color=BLUE, linewidth=0)
    axes.axhline(1_000, color=GREY, linewidth=0.8)
    axes.set_xlim(0, seconds)


def _held() -> Plate:
    text = (
        "`HeldBack`: a source delivers for `every` on average, then holds back for `hold`, and releases at once what happened "
        "meanwhile: bursts and late tuples at a time. `usual`: the delay that applies to all tuples. Drawn: arrivals of one "
        "source that measures 1,000 times a second (grey)."
    )
    holds = [(f'hold="{hold}"', HeldBack("5 seconds", hold)) for hold in ("200 ms", "1 second", "5 seconds")]
    everies = [(f'every="{every}"', HeldBack(every, "1 second")) for every in ("1 second", "5 seconds", "20 seconds")]
    usual = [
        (f'usual=ExponentialDelay("{mean}")', HeldBack("5 seconds", "1 second", ExponentialDelay(mean)))
        for mean in ("100 ms", "1 second", "5 seconds")
    ]
    rows = [
        Row([Panel(name, partial(arrivals_per_second, law)) for name, law in laws], "seconds", "arrivals/s")
        for laws in (holds, everies, usual)
    ]
    return Plate("held-back", "Bursts of late tuples", text, rows)
