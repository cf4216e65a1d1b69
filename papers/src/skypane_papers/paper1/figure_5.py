"""Figure 5: arrivals with and without bursts, and how much the sizes of panes deviate (section 4.3.3)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from skypane.workloads.estimators import counts, dispersion, gaps, squared_variation
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only
from skypane_papers.streams import as_published, event_times

SLOT: Final = 100_000
"""Microseconds of a count: a pane of section 4.3.3."""
SHOWN: Final = 60
"""Seconds in the plots."""


class Arrivals(NamedTuple):
    """A stream: tuples per second, index of dispersion, seconds that are measured."""

    rate: float
    dispersion: float
    seconds: float


STREAMS: Final = {
    "5a": Arrivals(1_000, 1, 1_200),
    "5b": Arrivals(1_000, 100, 1_200),
    "panes, no bursts": Arrivals(100_000, 1, 30),
    "panes, low": Arrivals(100_000, 1_000, 120),
    "panes, medium": Arrivals(100_000, 2_500, 120),
    "panes, high": Arrivals(100_000, 6_000, 120),
}


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream and slot that is plotted, with the figures of the whole stream in each."""
    return pd.concat(
        [
            _counted(name, made._replace(seconds=made.seconds / 10 if quick else made.seconds), seed)
            for name, made in STREAMS.items()
        ],
        ignore_index=True,
    )


def _counted(name: str, made: Arrivals, seed: int) -> pd.DataFrame:
    times = event_times(made.rate, made.dispersion, made.seconds, np.random.default_rng(5 + seed), as_published)
    series = counts(times, SLOT)
    mean = float(series.mean())
    shown = series[: SHOWN * 1_000_000 // SLOT]
    return pd.DataFrame({
        "stream": name,
        "I": made.dispersion,
        "second": np.arange(len(shown)) * SLOT / 1e6,
        "tuples": shown,
        "tuples/s": len(times) / made.seconds,
        "SCV": squared_variation(gaps(times)),
        "estimated I": dispersion(times).value,
        "deviation": float(series.std()) / mean,
        "limit": math.sqrt(max(made.dispersion, 1) / mean),
        "peak to mean": float(series.max()) / mean,
    })  # fmt: skip


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each stream."""
    return rows.drop_duplicates("stream").drop(columns=["second", "tuples"])


def _of(rows: pd.DataFrame, name: str, column: str) -> float:
    return float(only(rows, stream=name)[column].iloc[0])


def _poisson(rows: pd.DataFrame) -> Finding:
    scv, index = (_of(rows, "5a", column) for column in ("SCV", "estimated I"))
    return Finding(f"SCV {scv:.3f}, index {index:.2f}", abs(scv - 1) < 0.05 and abs(index - 1) < 0.25)


def _bursts(rows: pd.DataFrame) -> Finding:
    calm, bursty = (_of(rows, name, "deviation") for name in ("5a", "5b"))
    index, rate = _of(rows, "5b", "estimated I"), _of(rows, "5b", "tuples/s")
    ours = f"{rate:,.0f} tuples/s, index {index:.0f}; counts of 0.1 s deviate by {bursty:.0%} instead of {calm:.0%}"
    return Finding(ours, abs(index / 100 - 1) < 0.25 and bursty > 3 * calm)


def _pane_sizes(name: str, told: float) -> Claim:
    def judge(rows: pd.DataFrame) -> Finding:
        ours, limit = _of(rows, name, "deviation"), _of(rows, name, "limit")
        return Finding(f"{ours:.1%}; at most {limit:.1%}", abs(ours / told - 1) < 0.15)

    index = round(told**2 * 10_000)
    made = STREAMS[name]
    return Claim(
        f"4.3.3: with {name.removeprefix('panes, ')}{' bursts' if made.dispersion > 1 else ''} the size of panes deviates by {told:.1%}",
        judge,
        contradiction=(
            f"counts with an index of {made.dispersion:,.0f} have at most a variance of {made.dispersion:,.0f} times their mean, which is 10,000; "
            f"{told:.1%} is an index of {index:,} or more"
        ),
    )


FIGURE = Figure(
    title="arrivals with and without bursts, and the sizes of panes",
    regime=(
        "Poisson arrivals, and a MAP(2) with the shape of the paper's published generator: 16 times the rate and 80 % of the "
        "tuples in bursts. 5a and 5b: 1K tuples/s; panes: 100K tuples/s as in figure 8. Deviation of the counts of 0.1 s over "
        "their mean; limit: the root of I over their mean."
    ),
    measure=measure,
    seeds=3,
    summary=summary,
    claims=(
        Claim("5a: Poisson arrivals have an index of dispersion of 1, the SCV of their gaps", _poisson),
        Claim("5b: with the same mean and I = 100 the effect of burstiness is remarkable", _bursts),
        _pane_sizes("panes, no bursts", 0.028),
        _pane_sizes("panes, high", 1.23),
    ),
    plots=tuple(
        Plot(
            name[1:],
            f"Figure {name}: tuples in 0.1 s, I = {STREAMS[name].dispersion:,.0f}",
            "second",
            "tuples",
            where={"stream": name},
        )
        for name in ("5a", "5b")
    ),
)
