"""Figure 12: the speedup of the strategies on the three distributions, with the farm as the bottleneck."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.farms import WORKERS, bandwidth, costs, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only
from skypane_papers.sim.skyline_farm import Farm, simulate

STREAMS: Final = {"anticorrelated": (80_000, 10.0), "independent": (100_000, 10.0), "correlated": (250_000, 6.0)}
"""The streams of table II; the correlated one with a tenth of its window, which would be 15 million points."""
STRATEGIES: Final = ("LLW+", "LLW", "RR", "OD")
COUNTS: Final = (2, 4, 8, 12)
_IDLE: Final = 100.0
"""Points come this much faster, so that the farm is a bottleneck with any number of workers; windows are as they were."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each distribution, strategy and number of workers."""
    rows = []
    for kind, (rate, window) in STREAMS.items():
        some = stream(kind, *((rate // 20, window / 20) if quick else (rate, window)), seed=seed)
        pressed = some._replace(times=some.times / _IDLE)
        alone = bandwidth(kind, pressed, 1)
        for strategy in STRATEGIES:
            queue = 1 if strategy == "OD" else 10_000
            for n in (2, 6) if quick else COUNTS:
                served = simulate(pressed, Farm(n, queue, strategy), costs(kind)).bandwidth(since=0.75)
                rows.append({"points": kind, "strategy": strategy, "workers": n, "speedup": served / alone})
    return pd.DataFrame(rows)


def _most(rows: pd.DataFrame, kind: str) -> dict[str, float]:
    n = rows["workers"].max()
    return {strategy: at(rows, "speedup", points=kind, strategy=strategy, workers=n) for strategy in STRATEGIES}


def _best(rows: pd.DataFrame) -> Finding:
    found = {kind: _most(rows, kind) for kind in ("anticorrelated", "independent")}
    told = "; ".join(f"{kind} {', '.join(f'{s} {v:.1f}' for s, v in most.items())}" for kind, most in found.items())
    return Finding(told, all(most["LLW+"] >= 0.99 * max(most.values()) for most in found.values()))


def _llw(rows: pd.DataFrame) -> Finding:
    most = _most(rows, "anticorrelated")
    return Finding(
        f"LLW {most['LLW']:.2f}, RR {most['RR']:.2f}, OD {most['OD']:.2f}", most["LLW"] < min(most["RR"], most["OD"])
    )


def _correlated(rows: pd.DataFrame) -> Finding:
    found = {kind: _most(rows, kind)["LLW+"] / rows["workers"].max() for kind in STREAMS}
    told = ", ".join(f"{kind} {share:.0%}" for kind, share in found.items())
    return Finding(f"of the ideal: {told}", found["correlated"] == min(found.values()) and found["correlated"] < 0.85)


def _near(rows: pd.DataFrame) -> Finding:
    found = only(rows, strategy="LLW+", points="anticorrelated")
    share = float((found["speedup"] / found["workers"]).min())
    return Finding(f"{share:.0%} of the ideal at least, anticorrelated", share > 0.85)


FIGURE = Figure(
    title="speedup of the strategies by distribution",
    regime=(
        f"The streams of table II (the correlated one over 6 s), {WORKERS} workers at most, queues of 10,000 places (OD: one), in "
        "the costs of the paper's machine; points come faster than they can be served."
    ),
    measure=measure,
    seeds=2,
    claims=(
        Claim("LLW+ has the highest speedup with anticorrelated and independent points", _best),
        Claim("with anticorrelated points it is near the ideal", _near),
        Claim(
            "12a: with 10K places in the queues, LLW is less effective than the other strategies",
            _llw,
        ),
        Claim("12e: correlated points fall short of the ideal: parts of few points are uneven", _correlated),
    ),
    plots=tuple(
        Plot(letter, f"Figure 12{letter}: speedup, {kind}", "workers", "speedup", "strategy", {"points": kind})
        for letter, kind in zip("ace", STREAMS, strict=True)
    ),
)  # fmt: skip
