"""Plates of the content of tuples and of their senders: points, keys, sources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from measure.workload_gallery.arrivals import by_source
from measure.workload_gallery.plate import BLUE, GREEN, RED, Panel, Plate, Row
from skypane.kernels import skyline_indices
from skypane.types import FloatArray, IntArray
from skypane.workloads import Classic, Drifting, Poisson, Presence, Shared, Zipf
from skypane.workloads.arrivals.sent import SentTuples
from skypane.workloads.content.points import Kind, PointDistribution
from skypane.workloads.estimators import mean_correlation
from skypane.workloads.stream import generator

SEED = 7
_SECOND = 1_000_000
_COLOURS = (BLUE, RED, GREEN)
_KINDS: Final[tuple[Kind, ...]] = ("correlated", "independent", "anticorrelated")


def plates() -> list[Plate]:
    """Return the plates of points, keys and sources."""
    return [_classic(), _drifting(), _keys(), _sources()]


def drawn(points: PointDistribution, n: int, seconds: float = 0.0) -> FloatArray:
    """Return points of tuples at one time."""
    return points.draw(np.full(n, round(seconds * _SECOND)), generator(SEED, 0))


def scatter(points: PointDistribution, seconds: float, axes: Axes) -> None:
    """Draw 600 points of two criteria, their skyline in red."""
    found = drawn(points, 600, seconds)
    front = skyline_indices(found)
    axes.plot(found[:, 0], found[:, 1], ".", color=BLUE, markersize=2.2, rasterized=True)
    axes.plot(found[front, 0], found[front, 1], ".", color=RED, markersize=5)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def skyline_sizes(axes: Axes) -> None:
    """Draw the skyline of 2,000 points against the number of criteria."""
    dimensions = np.arange(1, 11)
    for colour, kind in zip(_COLOURS, _KINDS, strict=True):
        sizes = [len(skyline_indices(drawn(Classic(kind, int(d)), 2_000))) / 20 for d in dimensions]
        axes.plot(dimensions, sizes, color=colour, marker=".", label=kind, linewidth=1.2)
    axes.legend()


def correlation(points: PointDistribution, seconds: float, axes: Axes) -> None:
    """Draw the correlation of two criteria over time."""
    at = np.linspace(0, seconds, 61)
    found = [mean_correlation(drawn(points, 2_000, float(t))) for t in at]
    axes.plot(at, found, color=BLUE, linewidth=1.2)
    axes.set_ylim(-1, 1)
    axes.set_xlim(0, seconds)


def _classic() -> Plate:
    kinds = [Panel(f'Classic("{kind}", d=2)', partial(scatter, Classic(kind, 2), 0.0)) for kind in _KINDS]
    text = (
        "`Classic` draws `d` criteria in [0, 1], as the skyline literature does; red is the skyline. Below: how many of 2,000 "
        "points are in the skyline, as `d` grows."
    )
    rows = [
        Row(kinds, "first criterion", "second", from_zero=False),
        Row([Panel("share in the skyline", skyline_sizes)], "d", "%"),
    ]
    return Plate("points", "PointDistribution", text, rows, height=1.3)


def _drifting() -> Plate:
    short = Drifting(d=2)
    other = Drifting(("anticorrelated", "correlated"), "30 seconds", 2)
    moments = [Panel(f"at {t:g} s", partial(scatter, short, t)) for t in (0.0, 22.5, 30.0)]
    lines = [
        Panel('Drifting(period="1 minute")', partial(correlation, short, 120.0)),
        Panel('period="2 minutes"', partial(correlation, Drifting(period="2 minutes", d=2), 120.0)),
        Panel('two kinds, period="30 seconds"', partial(correlation, other, 120.0)),
    ]
    text = (
        "`Drifting` passes through `kinds` once in `period` (default: correlated, independent, anticorrelated, independent); "
        "between two, tuples are of either. Below: the correlation of two criteria over time."
    )
    rows = [
        Row(moments, "first criterion", "second", from_zero=False),
        Row(lines, "seconds", "correlation", from_zero=False),
    ]
    return Plate("drifting", "Drifting points", text, rows, height=1.3)


def keys_of(law: Zipf, times: IntArray) -> IntArray:
    """Return the keys of tuples at those times."""
    return law.draw(times, law.ends(), generator(SEED, 0))


def ranked(axes: Axes) -> None:
    """Draw the share of each rank of key."""
    for colour, exponent in zip(_COLOURS, (0.0, 0.8, 1.2), strict=True):
        keys = keys_of(Zipf(1_000, exponent), np.zeros(500_000, np.int64))
        shares = np.sort(np.bincount(keys, minlength=1_000))[::-1] / len(keys)
        at = np.unique(np.geomspace(1, 1_000, 40).astype(np.int64))
        axes.plot(at, shares[at - 1], color=colour, label=f"exponent = {exponent:g}", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend()


def over_time(law: Zipf, axes: Axes) -> None:
    """Draw how often each key comes, as a shade, over a minute."""
    times = np.arange(0, 60 * _SECOND, 500)
    counts, _, _ = np.histogram2d(times / _SECOND, keys_of(law, times), [60, np.arange(law.keys + 1)])
    axes.imshow(counts.T, aspect="auto", cmap="Blues", interpolation="none", extent=(0, 60, law.keys, 0), vmin=0)
    axes.grid(visible=False)


def _keys() -> Plate:
    moving = {"5 seconds": 1, "15 seconds": 1, "15 seconds, move_by=5": 5}
    panels = [
        Panel(f"move_every = {name}", partial(over_time, Zipf(20, 1.0, name.partition(",")[0], by)))
        for name, by in moving.items()
    ]
    text = (
        "`Zipf`: the popularity of `keys` keys falls as 1 / rank^`exponent`. With `move_every`, hot keys move, by `move_by` each "
        "time: dark is hot."
    )
    rows = [
        Row([Panel("Zipf(keys=1000)", ranked)], "rank", "share of tuples", from_zero=False),
        Row(panels, "seconds", "key", share_y=False, from_zero=False),
    ]
    return Plate("keys", "Keys", text, rows, height=1.2)


class _Present:
    """Sources that come and go, as a fleet."""

    def __init__(self, presence: Presence, streams: int = 24) -> None:
        self.presence = presence
        self.streams = streams

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield their tuples, and one at the end of time: a fleet does not end, even when all have left."""
        shared = Shared(Poisson(50.0 * self.streams), self.streams)
        yield from self.presence.thinned(shared.sent(rng), self.streams, generator(SEED, 1))
        yield SentTuples(np.array([np.iinfo(np.int64).max]), np.zeros(1, np.int64))


def shares(axes: Axes) -> None:
    """Draw the share of each source."""
    for colour, exponent in zip(_COLOURS, (0.0, 0.5, 1.0), strict=True):
        fleet = Shared(Poisson(1e5), 24, exponent)
        sources = next(iter(fleet.sent(generator(SEED, 0)))).sources
        axes.stairs(
            np.bincount(sources, minlength=24) / len(sources) * 100, color=colour, label=f"exponent = {exponent:g}"
        )
    axes.legend()


def _sources() -> Plate:
    settings = {
        'join_within="1 minute"': Presence(join_within="1 minute"),
        'stay="30 seconds"': Presence(stay="30 seconds"),
        "both": Presence(join_within="1 minute", stay="30 seconds"),
        'stall_every="20 s", stall_for="5 s"': Presence(stall_every="20 s", stall_for="5 s"),
        'stall_every="5 s", stall_for="5 s"': Presence(stall_every="5 s", stall_for="5 s"),
    }
    panels = [Panel(name, partial(by_source, _Present(presence), 120, 2)) for name, presence in settings.items()]
    text = (
        "`Presence`: sources join at times uniform in `join_within`, leave after `stay` on average, and fall silent every "
        "`stall_every` for `stall_for` on average. Each row is a source, dark when it sends; red is the total (tuples/s). "
        "`Shared` gives each source a share of a process: the larger `exponent`, the less alike."
    )
    first = [Panel("Shared(process, 24, exponent)", shares, "source", "% of tuples"), *panels[:2]]
    rows = [Row(part, "seconds", "source", share_y=False, from_zero=False) for part in (first, panels[2:])]
    return Plate("sources", "Sources", text, rows, height=1.2)
