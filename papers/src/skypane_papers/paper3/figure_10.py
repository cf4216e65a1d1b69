"""Figure 10: the cost of redirections under each strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pandas as pd

from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.many_inputs import (
    FLEETS,
    FORESEEN,
    LOAD_LEVEL,
    NODES,
    PAPERS,
    Regime,
    admitted,
    beside,
    each,
    in_seeds,
)

FORECAST: Final = ("psfcw", "sfvar", "bursty")
"""Workloads for which the paper has meta-data pay."""
SEEDS: Final = 6
_FORECASTS: Final = Cause(
    "Holt's forecasts miss jumps, turns and bursts: where the rates are foreseen, DRF buffers and delays less than ARD and ARI",
    TABLE,
)
COLUMNS: Final = ("redirected", "buffered", "delay")


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each workload, strategy and seed: means over the periods of a run."""
    seconds, seeds, names = (80.0, 1, list(FLEETS)[:2]) if quick else (600.0, SEEDS, list(FLEETS))
    return pd.concat([admitted(name, (*PAPERS, FORESEEN), Regime(seconds), seeds) for name in names], ignore_index=True)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each column over the seeds, and the lowest and highest."""
    runs = found.groupby(["workload", "strategy"], sort=False)
    spread = {f"{name}, {what}": (name, what) for name in COLUMNS for what in ("mean", "min", "max")}
    table: pd.DataFrame = runs.agg(**spread).reset_index()
    return table


def _par(found: pd.DataFrame) -> Finding:
    moved = each(found, "redirected", "PAR")
    return Finding(beside(tuple(FLEETS), moved, form=".0f"), min(moved) > 40)


def _less(column: str, better: str, worse: str, workloads: tuple[str, ...]) -> Callable[[pd.DataFrame], Finding]:
    """Return a judge: the mean over the seeds is lower with each workload."""

    def judge(found: pd.DataFrame) -> Finding:
        ours, theirs = each(found, column, better, workloads), each(found, column, worse, workloads)
        holds = all(one <= other for one, other in zip(ours, theirs, strict=True))
        wins = [in_seeds(found, better, worse, column, name) for name in workloads]
        told = beside(workloads, ours, theirs)
        return Finding(f"{told}; in {', '.join(map(str, wins))} of {found['seed'].nunique()} seeds", holds)

    return judge


def _claim(
    letter: str, better: str, worse: str, workloads: tuple[str, ...] = tuple(FLEETS), cause: Cause | None = None
) -> Claim:
    column, told = {
        "10a": ("redirected", "redirects fewer streams"),
        "10b": ("buffered", "buffers fewer tuples"),
        "10c": ("delay", "delays less"),
    }[letter]
    where = "" if len(workloads) == len(FLEETS) else f" under {', '.join(workloads)}"
    return Claim(f"{letter}: {better} {told} than {worse}{where}", _less(column, better, worse, workloads), cause)


def _trends_are_easier(found: pd.DataFrame) -> Finding:
    steps, trends = each(found, "buffered", "DRF", ("sfvar", "tfvar"))
    return Finding(f"{steps:,.0f} buffered under sfvar, {trends:,.0f} under tfvar", trends < steps)


FIGURE = Figure(
    title="redirections, buffered tuples and delay, by strategy and workload",
    regime=(
        f"80 streams of 20 to 200 tuples/s, {NODES} nodes of which the mean load fills {LOAD_LEVEL}; periods of 10 s, "
        "fluctuations of 2 minutes, bursts and pauses of 30 s on average; k = 3; no node is taken away. A redirection waits "
        f"for its old node's queue, and 0.5 s. Means per period of {SEEDS} seeds, with the lowest and the highest. {FORESEEN}: "
        "with the rates that will come in place of forecasts."
    ),
    measure=measure,
    summary=summary,
    claims=(
        Claim("10a: PAR moves most of the 80 streams in every period", _par),
        _claim("10a", "ARD", "ARI"),
        _claim("10a", "DRF", "ARD"),
        _claim("10a", "DRF-M", "DRF"),
        _claim("10b", "DRF", "ARD", cause=_FORECASTS),
        Claim("(ours) 10b: so it does where the rates are foreseen", _less("buffered", FORESEEN, "ARD", tuple(FLEETS))),
        Claim("10b: DRF buffers less under tfvar than under sfvar", _trends_are_easier),
        _claim("10b", "DRF-M", "DRF", FORECAST),
        _claim("10c", "DRF", "ARI", cause=_FORECASTS),
        _claim("10c", "DRF-M", "DRF"),
    ),
    plots=(
        Plot("a", "Figure 10a: streams redirected per period", "workload", "redirected", "strategy", bars=True),
        Plot("b", "Figure 10b: tuples buffered per period", "workload", "buffered", "strategy", bars=True, log="y"),
        Plot("c", "Figure 10c: delay per period (s)", "workload", "delay", "strategy", bars=True, log="y"),
    ),
)
