"""Figures 8 to 12: the time per operation of each kind of thread, and latency as the rate grows, on K-OS and K-OI."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.figure import Cause, Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import Run, measured
from skypane_papers.rows import at, only

INPUTS: Final = 20
DESIGNS: Final = {"K-OS": ("MQ", "MQLF", "TuMLSC"), "K-OI": ("MQ", "MQLF", "WiML")}
SHARES: Final = (0.2, 0.4, 0.6, 0.8)
"""Rates, as shares of what a design does when it is sent all it takes."""
ROUNDS: Final = 5
_KINDS: Final = ("add, ns", "output, ns")


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each query, design and rate; share 1 is as fast as it goes, medians of rounds in which all are measured in turn."""
    tuples = 20_000 if quick else 500_000
    rounds = [
        _row(turn, query, design, 1.0, measured(design, query, INPUTS, tuples, seed=seed))
        for turn in range(1 if quick else ROUNDS)
        for query, designs in DESIGNS.items()
        for design in designs
    ]
    full = _middle(pd.DataFrame(rounds))
    found = [
        _row(0, query, design, share, measured(design, query, INPUTS, tuples, rate=share * rate, seed=seed))
        for query, design, rate in zip(full["query"], full["design"], full["tuples/s"], strict=True)
        for share in (() if quick else SHARES)
    ]
    slower = [pd.DataFrame(found)] if found else []
    return pd.concat([*slower, full], ignore_index=True).drop(columns="round")


def _middle(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the medians of the rounds, with the least and the most nanoseconds of each kind of thread."""
    rounds = rows.groupby(["query", "design"], sort=False)
    spread = {
        f"{kind} {name}": rounds[kind].agg(how) for kind in _KINDS for name, how in (("least", "min"), ("most", "max"))
    }
    return rounds.median(numeric_only=True).assign(**spread).reset_index()


def _row(turn: int, query: str, design: str, share: float, done: Run) -> dict[str, object]:
    return {
        "round": turn, "query": query, "design": design, "share of the highest rate": share, "tuples/s": done.rate,
        "latency ms": 1e3 * float(pd.Series(done.late).median()),
        "add, ns": 1e9 * done.adding / done.tuples, "output, ns": 1e9 * done.output / done.tuples,
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
    ours = only(rows, query="K-OS")
    queues, gate = (
        [at(ours, f"output, ns{name}", design=design, **_FULL) for name in ("", " least", " most")]
        for design in ("MQ", "TuMLSC")
    )
    told = [f"{name} {ns[0]:.0f} ({ns[1]:.0f} to {ns[2]:.0f})" for name, ns in (("MQ", queues), ("TuMLSC", gate))]
    return Finding(f"ns a tuple: {', '.join(told)}", gate[2] < queues[1])


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
        "kind of thread for each tuple. Rates are shares of the highest that the design took, which is the median of five rounds, all in "
        "turn; with the least and the most."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("adding takes longer in TuMLSC, whose inputs merge, than in MQLF", _moved),
        Claim(
            "the output thread is relieved by it",
            _relieved,
            Cause(
                "compiled, S-Merge of 20 queues is so small a part of its work on K-OS, of which Update is nearly all, that a T-Gate saves "
                "less than rounds differ by",
                "paper2-s-merge",
            ),
        ),
        Claim("WiML's inputs do S-Merge and Update, and its output thread least", _most),
        Claim("latency explodes when the operator is saturated", _explodes),
    ),
    plots=(
        Plot("K-OS", "K-OS: latency (ms)", "tuples/s", "latency ms", "design", {"query": "K-OS"}, log="xy"),
        Plot("K-OI", "K-OI: latency (ms)", "tuples/s", "latency ms", "design", {"query": "K-OI"}, log="xy"),
    ),
    summary=summary,
)
