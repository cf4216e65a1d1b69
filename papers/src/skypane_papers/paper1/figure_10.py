"""Figure 10: the number of open panes, by delay and pane length."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.windows import Windows
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only
from skypane_papers.streams import disordered, event_times

LENGTHS: Final = (10, 20, 50, 100, 200)
"""Lengths of a pane, in milliseconds."""
DELAYS: Final = (100, 250, 500, 750, 1_000)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return the mean number of open panes for each mean delay and length of a pane."""
    seconds, rate = (8, 5_000) if quick else (30, 100_000)
    rows = []
    for delay in DELAYS:
        rng = np.random.default_rng(2 + seed)
        event, arrival = disordered(event_times(rate, 1_000, seconds, rng), 2_000 * delay, rng)
        for length in LENGTHS:
            made = SimulatedStream.of(Windows.of(f"{length} ms"), event, arrival, 2_000 * delay)
            newest = np.maximum.accumulate(made.pane)
            closed = np.searchsorted(made.closing, np.arange(len(made.pane)), side="right")
            settled = slice(len(newest) // 3, 2 * len(newest) // 3)
            rows.append({"delay": delay, "pane": length, "open": float((newest - closed + 1)[settled].mean())})
    return pd.DataFrame(rows)


def _linear(rows: pd.DataFrame) -> Finding:
    fits = []
    for length in LENGTHS:
        group = only(rows, pane=length)
        fits.append(float(np.corrcoef(group["delay"].to_numpy(float), group["open"].to_numpy(float))[0, 1]) ** 2)
    return Finding(f"r^2 of a line is at least {min(fits):.3f}", min(fits) > 0.99)


def _hundreds(rows: pd.DataFrame) -> Finding:
    most = float(rows["open"].max())
    return Finding(f"{most:.0f} (panes of 10 ms, delays of 1 s)", most < 1_000)


def _shorter(rows: pd.DataFrame) -> Finding:
    ratio = at(rows, "open", delay=1_000, pane=10) / at(rows, "open", delay=1_000, pane=100)
    return Finding(f"panes of a tenth: {ratio:.1f} times as many", 8 < ratio < 11)


FIGURE = Figure(
    title="open panes by delay and length",
    regime="100K tuples/s at I = 1,000; delays are uniform (their mean in ms), K is the longest.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("open panes grow linearly with the delay", _linear),
        Claim("there are more of shorter panes", _shorter),
        Claim("at most hundreds are open", _hundreds),
    ),
    plots=(Plot("", "Figure 10: open panes", "delay", "open", by="pane"),),
)
