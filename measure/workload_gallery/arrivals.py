"""Plates of the arrival generators: tuples per second over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from measure.workload_gallery.plate import BLUE, RED, Panel, Plate, Row
from skypane.types import FloatArray
from skypane.workloads import (
    BurstyFleet,
    Constant,
    ConstantFleet,
    FluctuatingFleet,
    Map2,
    OnOff,
    ParetoSlots,
    Poisson,
    RandomWalk,
    SelfSimilar,
    Steps,
)
from skypane.workloads.arrivals.sent import Fleet, Process
from skypane.workloads.stream import generator

SEED = 7
RATE = 1_000.0
_MICROS = 1e6
#: sources of a fleet that a panel shows; more would be too thin to distinguish
_SHOWN = 24


def rate(process: Process, seconds: float, slot: float, seed: int = SEED) -> FloatArray:
    """Return tuples per second in each slot of the first `seconds` of a process."""
    slots = round(seconds / slot)
    counts = np.zeros(slots, np.int64)
    for times in process.times(generator(seed, 0)):
        counts += np.bincount(np.minimum(times // round(slot * _MICROS), slots), minlength=slots + 1)[:slots]
        if times[-1] >= seconds * _MICROS:
            return counts / slot
    raise AssertionError("a process has no end")


def rates(fleet: Fleet, seconds: float, slot: float, seed: int = SEED) -> FloatArray:
    """Return (sources, slots) tuples per second."""
    slots = round(seconds / slot)
    counts = np.zeros((fleet.streams, slots), np.int64)
    for sent in fleet.sent(generator(seed, 0)):
        inside = sent.times < seconds * _MICROS
        np.add.at(counts, (sent.sources[inside], sent.times[inside] // round(slot * _MICROS)), 1)
        if not inside[-1]:
            return counts / slot
    raise AssertionError("a fleet has no end")


def over_time(process: Process, seconds: float, slot: float, axes: Axes) -> None:
    """Draw the rate of each slot, and its mean."""
    found = rate(process, seconds, slot)
    axes.stairs(found, np.arange(len(found) + 1) * slot, fill=True, color=BLUE, linewidth=0)
    axes.axhline(found.mean(), color=RED, linewidth=0.8)
    axes.set_xlim(0, seconds)


def by_source(fleet: Fleet, seconds: float, slot: float, axes: Axes) -> None:
    """Draw the rate of each source as a shade, and the total above it as a line."""
    found = rates(fleet, seconds, slot)
    axes.imshow(
        found,
        aspect="auto",
        interpolation="none",  # as many pixels as there are cells
        cmap="Blues",
        extent=(0, seconds, fleet.streams, 0),
        vmin=0,
    )
    axes.grid(visible=False)
    total = found.sum(axis=0)
    twin = axes.twinx()
    twin.plot((np.arange(len(total)) + 0.5) * slot, total, color=RED, linewidth=0.9)
    twin.set_ylim(0, total.max() * 1.15)
    twin.grid(visible=False)
    twin.tick_params(colors=RED)


def turned(base: Any, name: str, values: Sequence[Any], seconds: float, slot: float) -> Row:
    """Return the row in which parameter `name` of a config takes the given values."""
    settings = {field.name: getattr(base, field.name) for field in fields(base)}
    panels = [
        Panel(f"{name} = {_shown(value)}", partial(over_time, type(base)(**{**settings, name: value}), seconds, slot))
        for value in values
    ]
    return Row(panels, "seconds", "tuples/s")


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def plates() -> list[Plate]:
    """Return the plates of all arrival generators."""
    return [_plain(), _map2(), _self_similar(), _pareto_slots(), _random_walk(), _steps(), _on_off(), _fleets()]


def _plain() -> Plate:
    panels = [
        Panel("Constant(rate=1000)", partial(over_time, Constant(RATE), 10, 0.1)),
        Panel("Poisson(rate=1000)", partial(over_time, Poisson(RATE), 10, 0.1)),
        Panel("Poisson(rate=100)", partial(over_time, Poisson(RATE / 10), 10, 0.1)),
    ]
    text = (
        "`Constant` sends evenly, `Poisson` with independent exponential gaps (index of dispersion 1). `rate`: tuples per "
        "second. The line is the mean."
    )
    return Plate("plain", "Constant and Poisson", text, [Row(panels, "seconds", "tuples/s", share_y=False)])


def _map2() -> Plate:
    base = Map2(RATE, 1_000)
    text = (
        "`Map2` switches between a normal and a bursty state, fitted to `rate` and to the index of `dispersion` (papers 1 and "
        "5). More dispersion means longer bursts. `ratio`: how much faster tuples come in a burst. `burst_share`: share of "
        "all tuples that come in bursts."
    )
    rows = [
        turned(base, "dispersion", (100, 1_000, 8_000), 300, 2.5),
        turned(base, "ratio", (3, 10, 50), 300, 2.5),
        turned(base, "burst_share", (0.2, 0.5, 0.8), 300, 2.5),
    ]
    return Plate("map2", "Bursts: MAP(2)", text, rows)


def _self_similar() -> Plate:
    base = SelfSimilar(RATE, streams=8)
    text = (
        "`SelfSimilar` has a rate whose logarithm is fractional noise: bursts at all scales. `hurst`: how long memory is; the "
        "counts of m periods vary as m^hurst. `streams`: the rate varies as the sum of so many on/off streams; fewer vary more. "
        "`period`: for so long the rate stays, the smallest scale. Eight streams unless stated otherwise."
    )
    rows = [
        turned(base, "hurst", (0.55, 0.75, 0.95), 300, 2.5),
        turned(base, "streams", (2, 8, 64), 300, 2.5),
        turned(base, "period", ("50 ms", "200 ms", "1 second"), 300, 2.5),
    ]
    return Plate("self-similar", "Self-similar arrivals", text, rows)


def _pareto_slots() -> Plate:
    base = ParetoSlots(RATE, slot="100 ms")
    text = (
        "`ParetoSlots` draws the arrivals of each slot alone, from a Pareto law (paper 5, section 5.2): heavy tails without "
        "memory. `hurst` sets the tail, 3 - 2 hurst: the larger, the heavier. `slot`: how long a slot is (100 ms where nothing "
        "else is said)."
    )
    rows = [
        turned(base, "hurst", (0.55, 0.75, 0.95), 60, 0.5),
        turned(base, "slot", ("1 ms", "100 ms", "1 s"), 60, 0.5),
    ]
    return Plate("pareto-slots", "Pareto amounts per slot", text, rows)


def _random_walk() -> Plate:
    base = RandomWalk(RATE)
    text = (
        "`RandomWalk` moves the logarithm of the rate by a normal step at a time (paper 5). `sigma`: size of a step. "
        "`every`: time between steps. `span`: the rate stays between 1/span and span times a middle."
    )
    rows = [
        turned(base, "sigma", (0.1, 0.25, 0.5), 300, 2.5),
        turned(base, "every", ("2 seconds", "5 seconds", "20 seconds"), 300, 2.5),
        turned(base, "span", (1.5, 4.0, 8.0), 300, 2.5),
    ]
    return Plate("random-walk", "Random walk of the rate", text, rows)


def _steps() -> Plate:
    settings = {
        "Steps(): as in paper 5": Steps(),
        'every="10 seconds"': Steps(every="10 seconds"),
        "rates=(2000, 0, 500)": Steps((2_000.0, 0.0, 500.0)),
    }
    panels = [Panel(name, partial(over_time, process, 180, 1.5)) for name, process in settings.items()]
    text = "`Steps` holds each of `rates` (tuples per second) for `every`, over and over."
    return Plate("steps", "Steps", text, [Row(panels, "seconds", "tuples/s", share_y=False)])


def _on_off() -> Plate:
    base = OnOff(RATE)
    text = (
        "`OnOff` is Poisson while on and silent while off; both periods are exponential with means `on` and `off`. `rate` is "
        "the mean over both, so that shorter `on` periods are faster."
    )
    times = ("200 ms", "1 second", "5 seconds")
    return Plate(
        "on-off", "On and off", text, [turned(base, "on", times, 60, 0.5), turned(base, "off", times, 60, 0.5)]
    )


def _fleets() -> Plate:
    fleets: dict[str, Fleet] = {
        "ConstantFleet (constw)": ConstantFleet(5, 150, streams=_SHOWN),
        'FluctuatingFleet shape="step" (psfcw)': FluctuatingFleet(5, 150, streams=_SHOWN),
        'shape="trend" (ptfcw)': FluctuatingFleet(5, 150, shape="trend", streams=_SHOWN),
        "BurstyFleet (bursty)": BurstyFleet(100, streams=_SHOWN),
        'shape="step" total="varying" (sfvar)': FluctuatingFleet(5, 150, total="varying", streams=_SHOWN),
        'shape="trend" total="varying" (tfvar)': FluctuatingFleet(
            5, 150, shape="trend", total="varying", streams=_SHOWN
        ),
    }
    panels = [Panel(name, partial(by_source, fleet, 120, 2)) for name, fleet in fleets.items()]
    text = (
        "`ConstantFleet`, `FluctuatingFleet` and `BurstyFleet` are the sources of paper 3, section 6.1.1, here 24 of the 80: each row of a panel is a source, the darker the faster; the red line is "
        "their total (tuples/s, right). `low`, `high`: rates are drawn between them. `period`: of a fluctuation (1 minute "
        'here). `shape`: "step" or "trend". `total`: "constant" (pairs alternate) or "varying" (all at once). `active`, '
        "`idle`: mean lengths of a bursty source's periods. `streams`: how many sources."
    )
    rows = [
        Row(panels[:3], "seconds", "source", share_y=False, from_zero=False),
        Row(panels[3:], "seconds", "source", share_y=False, from_zero=False),
    ]
    return Plate("fleets", "Many sources", text, rows, height=1.25)
