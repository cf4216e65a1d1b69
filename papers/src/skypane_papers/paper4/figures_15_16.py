"""Figures 15 and 16: a stream in the layout of SensorScope's, whose distribution changes over time."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from skypane.operators.fronts import Front, NewPoints
from skypane.types import FloatArray
from skypane_papers.farms import DRAWS, WORKERS, stored, sustained
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only

D: Final = 4
WINDOWS: Final = (1.5, 3.0)
COUNTS: Final = (1, 4, 8, 12)
RECEIVED: Final = (50_000, 100_000, 200_000, 400_000)
REAL: Final = "sensors"
STATIONS: Final = 97
_DAY: Final = 400_000
"""Readings of all stations in a day."""


def readings(n: int, seed: int = 3) -> FloatArray:
    """Return (n, 4) readings, smaller being better: solar and global current, primary and secondary voltage.

    Stations report in turn. The sun rises and sets, clouds come and go by the hour; each station's panel, its battery
    and its sensors are its own; a battery fills by day and empties by night. Readings have the steps of a 12-bit
    converter.
    """
    rng = np.random.default_rng(seed)
    station, day = np.arange(n) % STATIONS, np.arange(n) / _DAY
    sun = np.maximum(0.0, np.sin(2 * np.pi * day))
    clouds = np.interp(day * 24, np.arange(int(day[-1] * 24) + 2), rng.uniform(0.2, 1.0, int(day[-1] * 24) + 2))
    panel, charge, size = (rng.uniform(low, 1.0, STATIONS) for low in (0.6, 0.3, 0.8))
    light = sun * clouds * rng.uniform(0.7, 1.0, n)
    solar = panel[station] * light + 0.01 * rng.random(n)
    total = 0.2 * rng.random(n) + 0.8 * rng.beta(2, 2, n) * (0.5 + light / 2)
    primary = size[station] * (
        0.75 + 0.25 * charge[station] * np.cos(2 * np.pi * (day - 0.4))
    ) + 0.08 * rng.standard_normal(n)
    secondary = 0.6 + 0.3 * rng.random(n) * size[station] + 0.05 * rng.standard_normal(n)
    columns = np.stack([solar, total, primary, secondary], axis=1)
    return -np.round(columns * 4096) / 4096


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return rates by workers (figure 15) and points stored by points received (figure 16)."""
    windows, counts = ((0.02, 0.04), (1, WORKERS)) if quick else (WINDOWS, COUNTS)
    rows = []
    for window in windows:
        rows += [_rate(REAL, window, n, seed) for n in counts]
    rows += [_rate(kind, windows[-1], WORKERS, seed) for kind in DRAWS]
    for n in (500, 1_000) if quick else RECEIVED:
        rows += [
            {"figure": "16", "points": kind, "received": n, "stored": stored(kind, n, D, seed=seed)} for kind in DRAWS
        ]
        rows.append({"figure": "16", "points": REAL, "received": n, "stored": _stored(n, seed)})
    return pd.DataFrame(rows)


def _rate(kind: str, window: float, workers: int, seed: int) -> dict[str, object]:
    draw = partial(readings, seed=3 + seed) if kind == REAL else None
    rate = sustained("independent" if kind == REAL else kind, window, workers, D, draw, seed=seed)
    return {"figure": "15", "points": kind, "window": window, "workers": workers, "rate": rate}


def _stored(received: int, seed: int) -> int:
    """Return the mean number of points stored over a day, at eight moments of it."""
    some = readings(_DAY + received, 3 + seed)
    front, counts = Front(D, received), []
    for first in range(0, len(some), _DAY // 8):
        times = np.arange(first, min(first + _DAY // 8, len(some)))
        front.step(NewPoints(some[times], times, times), int(times[-1]) + 1)
        if times[-1] >= received:
            counts.append(len(front))
    return round(float(np.mean(counts)))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rates with all workers, and points stored in the largest window, of each distribution."""
    last, sizes = only(rows, figure="15", workers=WORKERS), only(rows, figure="16")
    rates = only(last, window=last["window"].max())[["points", "rate"]]
    counts = only(sizes, received=sizes["received"].max())[["points", "received", "stored"]]
    return rates.merge(counts, on="points")


def _between(rows: pd.DataFrame) -> Finding:
    rates = {kind: at(summary(rows), "rate", points=kind) for kind in (REAL, *DRAWS)}
    told = ", ".join(f"{kind} {rate:,.0f}/s" for kind, rate in rates.items())
    nearer = abs(np.log(rates[REAL] / rates["independent"])) < abs(np.log(rates[REAL] / rates["anticorrelated"]))
    return Finding(told, bool(nearer and rates[REAL] > rates["anticorrelated"]))


def _lower(rows: pd.DataFrame) -> Finding:
    real, independent = (at(summary(rows), "rate", points=kind) for kind in (REAL, "independent"))
    return Finding(f"{real / independent - 1:+.0%}", 0.6 < real / independent < 1)


def _more(rows: pd.DataFrame) -> Finding:
    real, independent = (at(summary(rows), "stored", points=kind) for kind in (REAL, "independent"))
    return Finding(f"{real:,.0f} and {independent:,.0f}", 1 < real / independent < 1.6)


def _workers(rows: pd.DataFrame) -> Finding:
    short = only(rows, figure="15", points=REAL)
    short = short[short["window"] == short["window"].min()].sort_values("workers")["rate"].to_numpy(float)
    return Finding(", ".join(f"{rate:,.0f}" for rate in short), bool((np.diff(short) > 0).all()))


FIGURE = Figure(
    title="a stream like SensorScope's: sustainable rate, points stored (figures 15, 16)",
    regime=(
        "4 criteria (solar and global current, primary and secondary voltage, more is better) of 97 stations, drawn: days, clouds, batteries, "
        "12-bit steps: a stand-in for the published readings, which must have the same ties, that is the same shares of equal values "
        "by criterion and of equal points, in the same order. Windows of 1.5 and 3 s (the paper's: 15 and 30), 12 workers, LLW+, in the costs of its machine."
    ),
    measure=measure,
    seeds=2,
    summary=summary,
    claims=(
        Claim("15a: the rate grows with the workers", _workers),
        Claim("15b: it is nearer to that of independent points, and higher than with anticorrelated ones", _between),
        Claim("15b: it is slightly lower than with independent points", _lower),
        Claim("16: slightly more points are stored than of independent ones", _more),
    ),
    plots=(
        Plot("15a", "Figure 15a: sustainable points/s", "workers", "rate", "window", {"figure": "15", "points": REAL}),
        Plot("16", "Figure 16: points stored", "received", "stored", "points", {"figure": "16"}, log="xy"),
    ),
)  # fmt: skip
