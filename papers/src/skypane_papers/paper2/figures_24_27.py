"""Figures 24 to 27: throughput and latency of the designs over the cost of the aggregate function, from light to heavy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import PAPERS, QUERIES, SHARE, Query, measured
from skypane_papers.rows import at

INPUTS: Final = (PAPERS, 200)
COSTS: Final[dict[str, Callable[[Query], Query]]] = {
    "none": lambda query: query._replace(where=""),
    "mail": lambda query: query._replace(where="mail"),
    "mail or IP": lambda query: query,
    "mail or IP, 100 words": lambda query: query._replace(words=100),
    "mail or IP, 500 words": lambda query: query._replace(words=500),
}
"""Functions from light to heavy: all comments, those of queries f-OS and f-OI, of F-OS and F-OI, and the latter with longer comments."""
LIGHT: Final = "none"
HEAVY: Final = "mail or IP, 500 words"
DESIGNS: Final = {"F-OS": ("MQ", "MQLF", "TuMLSC"), "F-OI": ("MQ", "MQLF", "WiML")}
ROUNDS: Final = 3
CLOSE: Final = 0.1
"""Two figures are "really close" if they differ by less than this share."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each round, kind of query, number of inputs, function and design."""
    found = []
    for turn in range(1 if quick else ROUNDS):
        for inputs in INPUTS[:1] if quick else INPUTS:
            for name, changed in COSTS.items():
                tuples = 10_000 if quick else 200_000 if inputs == PAPERS else 100_000
                found += [
                    {"round": turn, "functions": query[-2:], "inputs": inputs, "cost": name, "design": design}
                    | _run(design, changed(QUERIES[query]), inputs, tuples, seed)
                    for query, designs in DESIGNS.items()
                    for design in designs
                ]
    return pd.DataFrame(found)


def _run(design: str, query: Query, inputs: int, tuples: int, seed: int) -> dict[str, float]:
    full = measured(design, query, inputs, tuples, seed=seed)
    slower = measured(design, query, inputs, tuples, rate=SHARE * full.rate, seed=seed)
    return {
        "capacity": full.capacity(inputs), "latency ms": 1e3 * float(np.median(slower.late)),
        "CPU ns a tuple": 1e9 * full.cpu / full.tuples,
    }  # fmt: skip


def _middle(rows: pd.DataFrame) -> pd.DataFrame:
    columns = ["functions", "inputs", "cost", "design"]
    return rows.groupby(columns, sort=False)[["capacity", "latency ms", "CPU ns a tuple"]].median().reset_index()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the medians of the rounds, with thousands of tuples a second as the capacity."""
    middle = _middle(rows)
    return middle.assign(
        capacity=(middle["capacity"] / 1e3).round(0), **{"CPU ns a tuple": middle["CPU ns a tuple"].round(0)}
    )


def _ratio(rows: pd.DataFrame, design: str, cost: str, inputs: int, figure: str = "capacity") -> float:
    """Return a design's median over that of MQ."""
    middle = _middle(rows)
    middle = middle[middle["functions"] == ("OS" if design == "TuMLSC" else "OI")]
    two = [at(middle, figure, design=name, cost=cost, inputs=inputs) for name in (design, "MQ")]
    return two[0] / two[1]


def _dearer(rows: pd.DataFrame) -> Finding:
    middle = _middle(rows)
    middle = middle[middle["inputs"] == PAPERS].set_index(["functions", "design", "cost"])
    told, fell = [], []
    for figure in ("capacity", "latency ms"):
        ratios = middle.xs(HEAVY, level="cost")[figure] / middle.xs(LIGHT, level="cost")[figure]
        told.append(f"{figure.partition(' ')[0]} {ratios.min():.2f} to {ratios.max():.2f} times")
        fell.append(bool(ratios.max() < 1) if figure == "capacity" else bool(ratios.min() > 1))
    return Finding(f"from the lightest to the heaviest: {', '.join(told)}", all(fell))


def _gains(rows: pd.DataFrame, inputs: int) -> list[float]:
    return [_ratio(rows, "TuMLSC", cost, inputs) for cost in (LIGHT, HEAVY)]


def _smaller(rows: pd.DataFrame) -> Finding:
    gains = {inputs: _gains(rows, inputs) for inputs in rows["inputs"].drop_duplicates()}
    told = "; ".join(
        f"with {inputs} inputs {light:.2f}, then {heavy:.2f} times MQ" for inputs, (light, heavy) in gains.items()
    )
    holding = [inputs for inputs, (light, heavy) in gains.items() if light > max(1, heavy)]
    return Finding(told, PAPERS in holding)


def _close(rows: pd.DataFrame) -> Finding:
    two = [_ratio(rows, "TuMLSC", HEAVY, PAPERS, figure) for figure in ("capacity", "latency ms")]
    return Finding(
        f"throughput {two[0]:.2f}, latency {two[1]:.2f} of MQ's", max(abs(ratio - 1) for ratio in two) < CLOSE
    )


def _wiml(rows: pd.DataFrame) -> Finding:
    faster, later = (
        [_ratio(rows, "WiML", cost, PAPERS, figure) for cost in COSTS] for figure in ("capacity", "latency ms")
    )
    told = ", ".join(f"{ratio:.1f}" for ratio in faster)
    ours = f"throughput {told} times MQ's, from light to heavy; latency {min(later):.3f} to {max(later):.3f} of it"
    return Finding(ours, min(faster) > 1 > max(later))


FIGURE = Figure(
    title="the cost of the aggregate function, from light to heavy",
    regime=(
        "The queries on comments of table 2, windows of 20 every 2, with four fifths of the comments without a match: no condition, a mail "
        "address, a mail or an IP address, and the same in longer comments, because a compiled search of ten words costs less than the "
        f"paper's regular expressions. {PAPERS} inputs as in the paper; 200 are ours. Capacity (thousands of tuples a second, a core for each "
        f"thread) as fast as they go; latency at {SHARE:.0%} of that; medians of {ROUNDS} rounds, all in turn."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("a dearer function costs throughput and latency", _dearer),
        Claim("TuMLSC is faster than MQ, and less so with a dearer function", _smaller),
        Claim("with the dearest TuMLSC's throughput and latency are really close to MQ's", _close),
        Claim("WiML has a higher throughput and a lower latency than MQ, whatever the function costs", _wiml),
    ),
    plots=tuple(
        Plot(
            f"{functions}-{name}", f"{functions}, {PAPERS} inputs, first round: {title}", "cost", figure, "design",
            {"functions": functions, "inputs": PAPERS, "round": 0}, bars=True,
        )
        for functions in ("OS", "OI")
        for name, figure, title in (("capacity", "capacity", "tuples per second, a core for each thread"), ("late", "latency ms", "latency (ms)"))
    ),
    summary=summary,
)  # fmt: skip
