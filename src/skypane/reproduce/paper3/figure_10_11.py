"""Figures 10 and 11: what redirections cost under each strategy, and how many nodes it takes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.control.admission import STRATEGIES, Admission
from skypane.reproduce.figure import Claim, Figure, Finding, Plot
from skypane.reproduce.many_inputs import EVERY, FLEETS, rows, said
from skypane.reproduce.rows import at
from skypane.runtime.sim.inputs import Inputs, simulate_inputs

LOAD_LEVEL: Final = 16
"""Nodes that the mean load would fill; there are 32."""
NODES: Final = 32
SETTLED: Final = 6
"""Periods until the streams are known."""
GIVEN_BACK: Final = "DRF-M, nodes given back"
FORECAST: Final = ("psfcw", "sfvar", "bursty")
"""Workloads for which the paper has meta-data pay."""
TREND: Final = ("ptfcw", "tfvar")


_OVERSHOOT = "a trend that has just turned, or a burst that ends, is forecast to go on"
_SURE = "DRF-M plans for the highest rate of the next three periods, and is never caught out by a jump that it knows of"
_PEAK = "nodes are never taken away, so that a total that varies keeps the nodes of its peak; the bound follows it down"


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each workload and strategy: means over the periods of some runs."""
    seconds, seeds = (80.0, 1) if quick else (600.0, 2)
    found = []
    for workload in FLEETS:
        runs = [_simulated(workload, seconds, seed) for seed in range(seeds)]
        found.append(pd.concat(runs).groupby(["workload", "strategy"], sort=False, as_index=False).mean())
    return pd.concat(found, ignore_index=True)


def _simulated(workload: str, seconds: float, seed: int) -> pd.DataFrame:
    came = rows(workload, seconds, seed)
    meta, capacity = said(workload, came), float(came.sum()) / seconds / LOAD_LEVEL
    laws = [(name, Admission(capacity=capacity, most=NODES, strategy=name)) for name in STRATEGIES]
    laws.append((GIVEN_BACK, Admission(capacity=capacity, most=NODES, give_back=0.85)))
    table = []
    for name, law in laws:
        setup = Inputs(came, law, capacity, most=NODES, meta=meta, every=EVERY)
        shown = pd.DataFrame(simulate_inputs(setup))[SETTLED:].drop(columns=["time", "because"])
        table.append({"workload": workload, "strategy": name, **shown.mean().to_dict()})
    made = pd.DataFrame(table)
    return made.assign(over=made["readers"] / made["fewest"] - 1)


def _each(found: pd.DataFrame, figure: str, strategy: str, workloads: tuple[str, ...] = tuple(FLEETS)) -> list[float]:
    return [at(found, figure, workload=workload, strategy=strategy) for workload in workloads]


def _beside(names: tuple[str, ...], *columns: list[float], form: str = ".1f") -> str:
    cells = zip(names, *columns, strict=True)
    return ", ".join(f"{name} {' / '.join(format(value, form) for value in values)}" for name, *values in cells)


def _par(found: pd.DataFrame) -> Finding:
    moved = _each(found, "redirected", "PAR")
    return Finding(_beside(tuple(FLEETS), moved, form=".0f"), min(moved) > 40)


def _less(figure: str, better: str, worse: str, workloads: tuple[str, ...] = tuple(FLEETS), form: str = ".1f") -> Claim:
    def judge(found: pd.DataFrame) -> Finding:
        ours, theirs = _each(found, figure, better, workloads), _each(found, figure, worse, workloads)
        holds = all(one <= other for one, other in zip(ours, theirs, strict=True))
        return Finding(_beside(workloads, ours, theirs, form=form), holds)

    told = {"redirected": "redirects fewer streams", "buffered": "buffers fewer tuples", "delay": "delays less",
            "over": "needs fewer nodes"}  # fmt: skip
    why = {"redirected": _OVERSHOOT, "buffered": _OVERSHOOT, "over": _SURE}.get(figure, "")
    letter = {"redirected": "10a", "buffered": "10b", "delay": "10c", "over": "11"}
    where = "" if len(workloads) == len(FLEETS) else f" under {', '.join(workloads)}"
    return Claim(f"{letter[figure]}: {better} {told[figure]} than {worse}{where}", judge, why)


def _trends_are_easier(found: pd.DataFrame) -> Finding:
    steps, trends = _each(found, "buffered", "DRF", ("sfvar", "tfvar"))
    return Finding(f"{steps:,.0f} buffered under sfvar, {trends:,.0f} under tfvar", trends < steps)


def _over(strategy: str, workloads: tuple[str, ...], most: float) -> Claim:
    def judge(found: pd.DataFrame) -> Finding:
        over = _each(found, "over", strategy, workloads)
        return Finding(_beside(workloads, over, form=".0%"), max(over) <= most)

    return Claim(
        f"11: {strategy} needs about {most:.0%} more nodes than the bound under {', '.join(workloads)}", judge, _PEAK
    )


def _more_than_others(found: pd.DataFrame) -> Finding:
    ours = _each(found, "readers", "DRF-M")
    best = np.min([_each(found, "readers", name) for name in ("ARI", "ARD", "DRF")], axis=0)
    more = [own / other - 1 for own, other in zip(ours, best.tolist(), strict=True)]
    return Finding(_beside(tuple(FLEETS), more, form="+.0%"), max(more) <= 0.1)


FIGURE = Figure(
    title="redirections, buffered tuples, delay and nodes, by strategy and workload",
    regime=(
        f"80 streams of 20 to 200 tuples/s, {NODES} nodes of which the mean load fills {LOAD_LEVEL}; periods of 10 s, "
        "fluctuations of 2 minutes, bursts and pauses of 30 s on average; k = 3. A redirection waits for its old node's "
        "queue, and 0.5 s. Means per period; `over` is nodes above the packing bound, which knows the period's rates "
        f"beforehand. `{GIVEN_BACK}` is not in the paper, which never takes a node away."
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
        _over("PAR", tuple(FLEETS), 0.05),
        _over("DRF", TREND, 0.15),
        _less("over", "DRF-M", "DRF", FORECAST, ".0%"),
        Claim("11: DRF-M needs 5 to 10 % more nodes than the other strategies", _more_than_others, _SURE),
        _over("DRF-M", tuple(FLEETS), 0.15),
    ),
    plots=(
        Plot("a", "Figure 10a: streams redirected per period", "workload", "redirected", "strategy", bars=True),
        Plot("b", "Figure 10b: tuples buffered per period", "workload", "buffered", "strategy", bars=True, log="y"),
        Plot("c", "Figure 10c: delay per period (s)", "workload", "delay", "strategy", bars=True, log="y"),
        Plot("d", "Figure 11: nodes above the bound", "workload", "over", "strategy", bars=True),
    ),
)
