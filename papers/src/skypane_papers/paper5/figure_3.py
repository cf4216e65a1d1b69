"""Figure 3: three traffic models at two time scales."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import numpy as np
import pandas as pd

from skypane.types import IntArray
from skypane.workloads import Map2, Poisson, SelfSimilar
from skypane.workloads.estimators import counts, hurst_by_variance
from skypane.workloads.estimators.counts import summed
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only

RATE: Final = 10_000
MODELS: Final[dict[str, Poisson | Map2 | SelfSimilar]] = {
    "Poisson": Poisson(RATE),
    "MAP": Map2(RATE, 1_000),
    "self-similar": SelfSimilar(RATE, 0.75),
}
SCALES: Final = (10, 100, 1_000)
"""Milliseconds."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each model and scale: how far counts deviate from their mean."""
    seconds = 20 if quick else 400
    rows = []
    for name, model in MODELS.items():
        chunks = takewhile(lambda chunk: chunk[0] < seconds * 1_000_000, model.times(np.random.default_rng(3 + seed)))
        times: IntArray = np.concatenate(list(chunks))
        fine = counts(times[times < seconds * 1_000_000], "10 ms")
        hurst = hurst_by_variance(fine)
        for scale in SCALES:
            coarse = summed(fine, scale // 10)
            deviation = float(coarse.std() / coarse.mean())
            even = (RATE * scale / 1_000) ** -0.5
            rows.append(
                {"model": name, "ms": scale, "deviation": deviation, "of Poisson": deviation / even, "hurst": hurst}
            )
    return pd.DataFrame(rows)


def _poisson(rows: pd.DataFrame) -> Finding:
    deviation = at(rows, "deviation", model="Poisson", ms=100)
    return Finding(f"counts of 100 ms deviate by {deviation:.1%}", deviation < 0.05)


def _others(rows: pd.DataFrame) -> Finding:
    found = [at(rows, "deviation", model=model, ms=100) for model in ("MAP", "self-similar")]
    return Finding(f"by {found[0]:.0%} and {found[1]:.0%}", min(found) > 0.1)


def _scales(rows: pd.DataFrame) -> Finding:
    """Ten times as long, and a count deviates by 10^(H - 1): 0.32 without memory, 0.56 at H = 0.75."""
    shrinks = {}
    for model in MODELS:
        deviations = only(rows, model=model)["deviation"].to_numpy(float)
        shrinks[model] = float((deviations[-1] / deviations[0]) ** 0.5)
    ours = ", ".join(f"{model} {shrink:.2f}" for model, shrink in shrinks.items())
    return Finding(f"each tenfold scale leaves of the deviation: {ours}", 0.4 < shrinks["self-similar"] < 0.75)


def _hurst(rows: pd.DataFrame) -> Finding:
    found = at(rows, "hurst", model="self-similar", ms=100)
    return Finding(f"H = {found:.2f} from its counts", abs(found - 0.75) < 0.1)


FIGURE = Figure(
    title="burstiness at several scales: Poisson, Markov-modulated, self-similar",
    regime="10K tuples/s by each model; the deviation of counts over their mean, and as a multiple of a Poisson stream's.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("a Poisson stream's burstiness is gone at 100 ms", _poisson),
        Claim("that of the others persists at 100 ms", _others),
        Claim("the self-similar stream looks nearly the same at each scale", _scales),
        Claim("the self-similar stream has a Hurst parameter of 0.75", _hurst),
    ),
    plots=(Plot("", "Figure 3: deviation of counts by scale (ms)", "ms", "deviation", by="model", log="xy"),),
)
