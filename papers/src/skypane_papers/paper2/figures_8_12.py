"""Figures 8 to 12: the time per operation of each kind of thread, and latency as the rate grows, on K-OS and K-OI."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import measured
from skypane_papers.rows import at, only

INPUTS: Final = 20
DESIGNS: Final = {"K-OS": ("MQ", "MQLF", "TuMLSC"), "K-OI": ("MQ", "MQLF", "WiML")}
SHARES: Final = (0.2, 0.4, 0.6, 0.8)
"""Rates, as shares of what a design does when it is sent all it takes."""


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each query, design and rate; share 1 is as fast as it goes."""
    tuples, found = 20_000 if quick else 500_000, []
    for query, designs in DESIGNS.items():
        for design in designs:
            full = measured(design, query, INPUTS, tuples)
            for share in () if quick else SHARES:
                slow = measured(design, query, INPUTS, tuples, rate=share * full.rate)
                found.append(_row(query, design, share, slow.rate, slow.late))
            found.append(
                _row(query, design, 1.0, full.rate, full.late)
                | {"add, ns": 1e9 * full.adding / full.tuples, "output, ns": 1e9 * full.output / full.tuples}
            )
    return pd.DataFrame(found)


def _row(query: str, design: str, share: float, rate: float, late: object) -> dict[str, object]:
    return {
        "query": query, "design": design, "share of the highest rate": share, "tuples/s": rate,
        "latency ms": 1e3 * float(pd.Series(late).median()),
    }  # fmt: skip


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each query and design."""
    full = only(rows, **{"share of the highest rate": 1.0})
    low = rows["share of the highest rate"].min()
    slow = only(rows, **{"share of the highest rate": low}).set_index(["query", "design"])["latency ms"]
    table = full.assign(
        **{
            f"latency at {low:.0%}, ms": [
                slow[query, design] for query, design in zip(full["query"], full["design"], strict=True)
            ]
        }
    )
    return table.drop(columns="share of the highest rate").round(2)


def _moved(rows: pd.DataFrame) -> Finding:
    told = [
        f"{design} {at(only(rows, query='K-OS'), 'add, ns', design=design, **_FULL):.0f}" for design in DESIGNS["K-OS"]
    ]
    two = [at(only(rows, query="K-OS"), "add, ns", design=design, **_FULL) for design in ("MQLF", "TuMLSC")]
    return Finding("ns a tuple: " + ", ".join(told), two[1] > two[0])


def _relieved(rows: pd.DataFrame) -> Finding:
    two = [at(only(rows, query="K-OS"), "output, ns", design=design, **_FULL) for design in ("MQ", "TuMLSC")]
    return Finding(f"{two[0]:.0f} ns a tuple for MQ, {two[1]:.0f} for TuMLSC", two[1] < two[0])


def _most(rows: pd.DataFrame) -> Finding:
    add, output = (
        {design: at(only(rows, query="K-OI"), figure, design=design, **_FULL) for design in DESIGNS["K-OI"]}
        for figure in ("add, ns", "output, ns")
    )
    return Finding(
        f"adding takes {add['WiML']:.0f} ns a tuple (MQ {add['MQ']:.0f}), the output {output['WiML']:.0f} (MQ {output['MQ']:.0f})",
        add["WiML"] > add["MQ"] and output["WiML"] < output["MQ"],
    )


def _explodes(rows: pd.DataFrame) -> Finding:
    full = only(rows, **_FULL)["latency ms"].median()
    below = rows[rows["share of the highest rate"] < 1]["latency ms"].median()
    return Finding(f"{full:.1f} ms when full, {below:.2f} ms below", full > 2 * below)


_FULL: Final[dict[str, object]] = {"share of the highest rate": 1.0}

FIGURE = Figure(
    title="durations of operations, and latency over the rate",
    regime=(
        f"Queries K-OS and K-OI with {INPUTS} inputs, sent by two real threads and answered by one, on this machine; CPU nanoseconds of a "
        "kind of thread for each tuple. Rates are shares of the highest that the design took."
    ),
    measure=measure,
    claims=(
        Claim("adding takes longer in TuMLSC, whose inputs merge, than in MQLF", _moved),
        Claim("the output thread is relieved by it", _relieved),
        Claim("WiML's inputs do S-Merge and Update, and its output thread least", _most),
        Claim("latency explodes when the operator is saturated", _explodes),
    ),
    plots=(
        Plot("K-OS", "K-OS: latency (ms)", "tuples/s", "latency ms", "design", {"query": "K-OS"}, log="xy"),
        Plot("K-OI", "K-OI: latency (ms)", "tuples/s", "latency ms", "design", {"query": "K-OI"}, log="xy"),
    ),
    summary=summary,
)
