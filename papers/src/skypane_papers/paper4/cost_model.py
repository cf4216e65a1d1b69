"""Equations 1 to 3: the time of a point, the bandwidth of n workers, and the workers that a stream needs."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pandas as pd

from skypane.kernels.compiled import kernel
from skypane.operators.fronts import Front, NewPoints
from skypane.types import FloatArray, IntArray
from skypane_papers.clock import cpu_seconds
from skypane_papers.farms import DRAWS, D, bandwidth, costs, points, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

RECEIVED: Final = (50_000, 100_000, 200_000, 400_000, 800_000)
CHECKED: Final = (("independent", 40_000, 10.0), ("anticorrelated", 40_000, 10.0))
COUNTS: Final = (1, 2, 4, 8)
_ARRIVALS: Final = 2_000


@kernel
def scan(columns: FloatArray, times: IntArray, arrivals: FloatArray) -> np.int64:
    """Look for the youngest dominator of each arrival (n, d) in a store by attribute (d, m), and for what it dominates.

    One pass over all that is stored, as the paper's workers do it, here without branches, so that compilers vectorise
    it.
    """
    d, m = columns.shape
    below = np.empty(m, np.bool_)
    above = np.empty(m, np.bool_)
    found = np.int64(0)
    for i in range(arrivals.shape[0]):
        below[:] = True
        above[:] = True
        for j in range(d):
            x = arrivals[i, j]
            for k in range(m):
                below[k] &= columns[j, k] <= x
                above[k] &= columns[j, k] >= x
        youngest = np.int64(-1)
        for k in range(m):
            youngest = max(youngest, times[k] if below[k] else np.int64(-1))
            found += np.int64(above[k])
        found += np.int64(youngest >= 0)
    return found


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return times of a point by points stored (equation 1), and bandwidths by workers (equations 2 and 3)."""
    rows = []
    for kind in DRAWS:
        for received in (1_000, 4_000) if quick else RECEIVED:
            front = Front(D, received)
            some, times = points(kind, received, seed=1 + seed), np.arange(received)
            front.step(NewPoints(some, times, times), received)
            store = front.snapshot()
            columns, coming = np.ascontiguousarray(store.points.T), points(kind, _ARRIVALS, seed=9 + seed)
            seconds = cpu_seconds(lambda: scan(columns, store.times, coming)) / _ARRIVALS  # noqa: B023 - called at once
            rows.append({"equation": "1", "points": kind, "stored": len(store.rows), "microseconds": seconds * 1e6})
    for kind, rate, window in CHECKED:
        calm = stream(kind, rate // 20, window / 20, seed=seed) if quick else stream(kind, rate, window, seed=seed)
        pressed = calm._replace(times=calm.times / 100)  # faster than it can be served
        full = len(calm.gone) * 2 // 3
        size = int(np.count_nonzero(calm.gone[:full] > full))
        for n in COUNTS:
            model = n / (costs(kind).stored * size)
            rows.append({
                "equation": "2", "points": kind, "stored": size, "workers": n, "bandwidth": bandwidth(kind, pressed, n),
                "model": model, "needed": rate * costs(kind).stored * size, "rate": rate,
            })  # fmt: skip
    return pd.DataFrame(rows)


def fit(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return T_F in nanoseconds, microseconds that do not depend on what is stored, and the share of variance explained."""
    first = only(rows, equation="1")
    x, y = first["stored"].to_numpy(float), first["microseconds"].to_numpy(float)
    slope, base = np.polyfit(x, y, 1)
    return float(slope * 1e3), float(base), float(1 - np.var(y - slope * x - base) / np.var(y))


def _linear(rows: pd.DataFrame) -> Finding:
    slope, base, explained = fit(rows)
    return Finding(
        f"T_F = {slope:.2f} ns for a stored point, {base:.2f} us beside; R^2 = {explained:.3f}", explained > 0.95
    )


def _bandwidth(rows: pd.DataFrame) -> Finding:
    second = only(rows, equation="2")
    ratios = (second["bandwidth"] / second["model"]).to_numpy(float)
    return Finding(f"{ratios.min():.2f} to {ratios.max():.2f} of it", bool(ratios.min() > 0.85 and ratios.max() < 1.1))


def _needed(rows: pd.DataFrame) -> Finding:
    told, holds = [], True
    for kind, group in only(rows, equation="2").groupby("points", sort=False):
        model = math.ceil(float(group["needed"].iloc[0]))
        per_worker = float((group["bandwidth"] / group["workers"]).iloc[-1])
        simulated = math.ceil(float(group["rate"].iloc[0]) / per_worker)
        told.append(f"{kind} {simulated} and {model}")
        holds &= abs(simulated - model) <= 1
    return Finding(f"workers simulated and by the model: {', '.join(told)}", holds)


FIGURE = Figure(
    title="the cost model, equations 1 to 3, fitted",
    regime=(
        "Equation 1: a scan of all that is stored, by attribute, compiled, on one core here, CPU time. Equations 2 and 3: the "
        "simulated farm in the costs of the paper's machine against n / (T_F |DB|), where |DB| is T_w times the rate times 1 - p."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("1: the time of a point is T_F for each point stored", _linear),
        Claim(
            "2: n workers offer n / (T_F T_w rate (1 - p))",
            _bandwidth,
        ),
        Claim("3: as many are needed as the rate times the time of a point", _needed),
    ),
    plots=(
        Plot("1", "Equation 1: microseconds for a point", "stored", "microseconds", "points", {"equation": "1"}),
        Plot("2", "Equation 2: offered bandwidth", "workers", "bandwidth", "points", {"equation": "2"}),
    ),
)
