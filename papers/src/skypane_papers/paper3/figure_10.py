"""Figure 10: the cost of redirections under each strategy."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane.control.admission import STRATEGIES
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.many_inputs import FLEETS, LOAD_LEVEL, NODES, admitted, beside, each

FORECAST: Final = ("psfcw", "sfvar", "bursty")
"""Workloads for which the paper has meta-data pay."""

_OVERSHOOT = "a trend that has just turned, or a burst that ends, is forecast to go on"


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each workload and strategy: means over the periods of some runs."""
    seconds, seeds, names = (80.0, 1, list(FLEETS)[:2]) if quick else (600.0, 2, list(FLEETS))
    return pd.concat([admitted(name, tuple(STRATEGIES), seconds, seeds) for name in names], ignore_index=True)


def _par(found: pd.DataFrame) -> Finding:
    moved = each(found, "redirected", "PAR")
    return Finding(beside(tuple(FLEETS), moved, form=".0f"), min(moved) > 40)


def _less(figure: str, better: str, worse: str, workloads: tuple[str, ...] = tuple(FLEETS), form: str = ".1f") -> Claim:
    def judge(found: pd.DataFrame) -> Finding:
        ours, theirs = each(found, figure, better, workloads), each(found, figure, worse, workloads)
        holds = all(one <= other for one, other in zip(ours, theirs, strict=True))
        return Finding(beside(workloads, ours, theirs, form=form), holds)

    told = {"redirected": "redirects fewer streams", "buffered": "buffers fewer tuples", "delay": "delays less"}
    letter = {"redirected": "10a", "buffered": "10b", "delay": "10c"}
    where = "" if len(workloads) == len(FLEETS) else f" under {', '.join(workloads)}"
    return Claim(f"{letter[figure]}: {better} {told[figure]} than {worse}{where}", judge, _OVERSHOOT)


def _trends_are_easier(found: pd.DataFrame) -> Finding:
    steps, trends = each(found, "buffered", "DRF", ("sfvar", "tfvar"))
    return Finding(f"{steps:,.0f} buffered under sfvar, {trends:,.0f} under tfvar", trends < steps)


FIGURE = Figure(
    title="redirections, buffered tuples and delay, by strategy and workload",
    regime=(
        f"80 streams of 20 to 200 tuples/s, {NODES} nodes of which the mean load fills {LOAD_LEVEL}; periods of 10 s, "
        "fluctuations of 2 minutes, bursts and pauses of 30 s on average; k = 3; no node is taken away. A redirection waits "
        "for its old node's queue, and 0.5 s. Means per period."
    ),
    measure=measure,
    claims=(
        Claim("10a: PAR moves most of the 80 streams in every period", _par),
        _less("redirected", "ARD", "ARI"),
        _less("redirected", "DRF", "ARD"),
        _less("buffered", "DRF", "ARD"),
        Claim("10b: DRF buffers less under tfvar than under sfvar", _trends_are_easier),
        _less("redirected", "DRF-M", "DRF"),
        _less("buffered", "DRF-M", "DRF", FORECAST, ",.0f"),
        _less("delay", "DRF-M", "DRF"),
    ),
    plots=(
        Plot("a", "Figure 10a: streams redirected per period", "workload", "redirected", "strategy", bars=True),
        Plot("b", "Figure 10b: tuples buffered per period", "workload", "buffered", "strategy", bars=True, log="y"),
        Plot("c", "Figure 10c: delay per period (s)", "workload", "delay", "strategy", bars=True, log="y"),
    ),
)
