"""Figures 10 and 11: the offered bandwidth by workers, for windows of several lengths and streams of several rates."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from skypane_papers.farms import WORKERS, bandwidth, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

CASES: Final = (
    *(("10", kind, 40_000, window) for kind in ("anticorrelated", "independent") for window in (10, 30, 60, 90)),
    *(("11", "anticorrelated", rate, 10) for rate in (50_000, 100_000)),
    *(("11", "independent", rate, 20) for rate in (50_000, 100_000)),
)
"""Figure, points, points a second, seconds."""
COUNTS: Final = (1, 2, 4, 6, 8, 10, 12)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream and number of workers."""
    rows = []
    for figure, kind, rate, window in CASES:
        some = stream(kind, *((rate // 20, window / 20) if quick else (rate, window)), beyond=0.3, seed=seed)
        case = {
            "figure": figure,
            "points": kind,
            "rate": rate,
            "window": window,
            "stream": f"{rate // 1000}K x {window} s",
        }
        rows += [
            case | {"workers": n, "bandwidth": bandwidth(kind, some, n)} for n in ((1, WORKERS) if quick else COUNTS)
        ]
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each stream: the workers that remove the bottleneck, and the bandwidth with one and with all."""
    lines = []
    for (figure, kind, stream_), group in rows.groupby(["figure", "points", "stream"], sort=False):
        ends = group.sort_values("workers")["bandwidth"]
        lines.append({
            "figure": figure, "points": kind, "stream": stream_, "workers needed": enough(group),
            "bandwidth of 1": float(ends.iloc[0]), "bandwidth of 12": float(ends.iloc[-1]),
        })  # fmt: skip
    return pd.DataFrame(lines)


def enough(rows: pd.DataFrame) -> float:
    """Return the least number of workers that serve the rate, infinite if none does."""
    found = rows.loc[rows["bandwidth"] >= 0.995 * rows["rate"], "workers"]
    return float(found.min()) if len(found) else math.inf


def _needed(rows: pd.DataFrame, kind: str, rate: int, windows: tuple[int, ...]) -> list[float]:
    return [enough(only(rows, points=kind, rate=rate, window=window)) for window in windows]


def _told(needed: list[float]) -> str:
    return ", ".join("more than 12" if math.isinf(n) else f"{n:.0f}" for n in needed)


def _anticorrelated(rows: pd.DataFrame) -> Finding:
    needed = _needed(rows, "anticorrelated", 40_000, (10, 30, 60, 90))
    return Finding(_told(needed), needed[0] <= 8 and needed[1] <= 8 and needed[2] <= 10 and needed[3] <= 12)


def _longer(rows: pd.DataFrame) -> Finding:
    needed = [_needed(rows, kind, 40_000, (10, 30, 60, 90)) for kind in ("anticorrelated", "independent")]
    return Finding("; ".join(map(_told, needed)), all(some == sorted(some) for some in needed))


def _fewer(rows: pd.DataFrame) -> Finding:
    anti, ind = (_needed(rows, kind, 40_000, (10, 30, 60, 90)) for kind in ("anticorrelated", "independent"))
    return Finding(f"{_told(ind)} against {_told(anti)}", all(b <= a for a, b in zip(anti, ind, strict=True)))


def _fast(rows: pd.DataFrame) -> Finding:
    slow, fast = (_needed(rows, "anticorrelated", rate, (10,)) for rate in (50_000, 100_000))
    return Finding(f"{_told(slow)}; {_told(fast)}", slow[0] == 8 and math.isinf(fast[0]))


def _same_window(rows: pd.DataFrame) -> Finding:
    thirty, ten = _needed(rows, "anticorrelated", 40_000, (30,)), _needed(rows, "anticorrelated", 100_000, (10,))
    return Finding(f"40K/s x 30 s: {_told(thirty)}; 100K/s x 10 s: {_told(ten)}", thirty[0] < ten[0])


def _independent(rows: pd.DataFrame) -> Finding:
    needed = _needed(rows, "independent", 100_000, (20,))
    return Finding(_told(needed), math.isinf(needed[0]))


FIGURE = Figure(
    title="offered bandwidth by workers, windows and rates (figures 10, 11)",
    regime=(
        "In the costs of the paper's machine (a stored point 12 ns, anticorrelated, fitted to 10 workers at 40K/s x 60 s; 20 ns, "
        "independent), LLW+; points served a second once the window is full."
    ),
    measure=measure,
    seeds=2,
    summary=summary,
    claims=(
        Claim("10a: for anticorrelated points at 40K/s, 8, 8, 10, 12 workers are enough for windows of 10, 30, 60, 90 s", _anticorrelated),
        Claim("10: longer windows need more workers", _longer),
        Claim("10b: independent points need fewer", _fewer),
        Claim("11a: anticorrelated points at 50K/s need 8 workers; 100K/s are not reached", _fast),
        Claim("11b: independent points at 100K/s x 20 s are not reached", _independent),
        Claim("a third more points in the window are less than two and a half times the rate: n grows as its square", _same_window),
    ),
    plots=tuple(
        Plot(f"{figure}{letter}", f"Figure {figure}{letter}: {kind}", "workers", "bandwidth", "stream", {"figure": figure, "points": kind})
        for figure in ("10", "11")
        for letter, kind in (("a", "anticorrelated"), ("b", "independent"))
    ),
)  # fmt: skip
