"""Figures 13 to 27: throughput and latency of the designs on the twelve queries of table 2, over the number of inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.figure import Cause, Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import PAPERS, QUERIES, SHARE, measured
from skypane_papers.rows import only

INPUTS: Final = (2, 10, 20, 200)
ORDERED: Final = ("MQ", "MQLF", "TuMLSC", "ColumnarTuMLSC")
UNORDERED: Final = ("MQ", "MQLF", "WiML", "ColumnarWiML")
ROUNDS: Final = 3
LITTLE: Final = 0.8
"""A figure that is "rather stable" or "almost constant" keeps this share of itself."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each round, query, number of inputs and design."""
    found = []
    for turn in range(1 if quick else ROUNDS):
        for query in ("k-OS", "k-OI", "K-OI") if quick else QUERIES:
            for inputs in INPUTS[:1] if quick else INPUTS:
                tuples = 20_000 if quick else 400_000 if inputs <= PAPERS else 200_000
                found += [
                    {"round": turn, "query": query, "inputs": inputs, "design": design}
                    | _run(design, query, inputs, tuples, seed)
                    for design in (ORDERED if query.endswith("OS") else UNORDERED)
                ]
    return pd.DataFrame(found)


def _run(design: str, query: str, inputs: int, tuples: int, seed: int) -> dict[str, float]:
    full = measured(design, query, inputs, tuples, seed=seed)
    slower = measured(design, query, inputs, tuples, rate=SHARE * full.rate, seed=seed)
    return {
        "tuples/s": full.rate, "tuples/CPU s": full.tuples / full.cpu, "capacity": full.capacity(inputs),
        "latency ms": 1e3 * float(np.median(slower.late)),
    }  # fmt: skip


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each query and number of inputs: thousands of tuples a second with a core for each thread, and latency."""
    middle = rows.assign(thousands=(rows["capacity"] / 1e3)).pivot_table(
        index=["query", "inputs"], columns="design", values=["thousands", "latency ms"], aggfunc="median", sort=False
    )
    designs = [design for design in dict.fromkeys((*ORDERED, *UNORDERED)) if ("thousands", design) in middle]
    table = {f"{design}": middle["thousands"][design].round(0) for design in designs}
    table |= {f"{design}, ms": middle["latency ms"][design].round(2) for design in designs}
    return pd.DataFrame(table).reset_index()


def _papers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["inputs"] <= PAPERS]


def _kind(rows: pd.DataFrame, kind: str) -> list[str]:
    return [query for query in QUERIES if query in set(rows["query"]) and query.endswith(kind)]


def _ratios(rows: pd.DataFrame, kind: str, over: str, under: str, figure: str = "capacity") -> pd.DataFrame:
    """Return, by query and round, one design's figure over another's at the most inputs."""
    most = rows[(rows["inputs"] == rows["inputs"].max()) & rows["query"].isin(_kind(rows, kind))]
    two = [only(most, design=design).set_index(["query", "round"])[figure] for design in (over, under)]
    return (two[0] / two[1]).rename("ratio").reset_index()


def _grown(rows: pd.DataFrame, kind: str, design: str, figure: str = "capacity") -> pd.Series[float]:
    """Return, by query, the medians of a figure at the most inputs over those at the fewest."""
    mine = only(rows, design=design)
    mine = mine[mine["query"].isin(_kind(rows, kind))]
    table = mine.pivot_table(index="query", columns="inputs", values=figure, aggfunc="median")
    return table[table.columns.max()] / table[table.columns.min()]


def _told(ratios: Iterable[float]) -> str:
    values = list(ratios)
    return f"{min(values):.2f} to {max(values):.2f}"


def _beyond(rows: pd.DataFrame, told: str) -> str:
    """Return what is ours beyond the paper's number of inputs, or nothing where that was not measured."""
    most = int(rows["inputs"].max())
    return f"; (ours) with {most} inputs {told}" if most > PAPERS else ""


def _falls(rows: pd.DataFrame) -> Finding:
    both = [pd.concat([_grown(part, "", design) for design in ("MQ", "MQLF")]) for part in (_papers(rows), rows)]
    most = int(_papers(rows)["inputs"].max())
    ours = f"with {most} inputs {_told(both[0])} of the throughput with 2"
    return Finding(f"{ours}{_beyond(rows, _told(both[1]))}", bool(both[0].max() < LITTLE))


def _stable(rows: pd.DataFrame) -> Finding:
    grown = _grown(_papers(rows), "OS", "TuMLSC")
    ours = f"{_told(grown)} of the throughput with 2{_beyond(rows, _told(_grown(rows, 'OS', 'TuMLSC')))}"
    return Finding(ours, bool(grown.min() > LITTLE))


def _wiml_grows(rows: pd.DataFrame) -> Finding:
    grown = _grown(_papers(rows), "OI", "WiML")
    ours = f"{_told(grown)} times the throughput with 2{_beyond(rows, _told(_grown(rows, 'OI', 'WiML')))}"
    return Finding(ours, bool(grown.min() > 1))


def _faster(rows: pd.DataFrame, kind: str, design: str) -> Finding:
    """Return by how much a design is faster than MQ with the paper's most inputs, and in how many queries in each round."""
    found = _ratios(_papers(rows), kind, design, "MQ")
    rounds = found.groupby("query")["ratio"].agg(["median", "min"])
    each = f"faster in each round on {(rounds['min'] > 1).sum()} of {len(rounds)} queries"
    beyond = _beyond(rows, _told(_ratios(rows, kind, design, "MQ").groupby("query")["ratio"].median()))
    most = int(_papers(rows)["inputs"].max())
    return Finding(
        f"with {most} inputs {_told(rounds['median'])} times MQ, {each}{beyond}", bool((rounds["min"] > 1).all())
    )


def _tumlsc(rows: pd.DataFrame) -> Finding:
    return _faster(rows, "OS", "TuMLSC")


def _wiml(rows: pd.DataFrame) -> Finding:
    return _faster(rows, "OI", "WiML")


def _windows(rows: pd.DataFrame) -> Finding:
    pairs = [("w-OS", "W-OS", "TuMLSC"), ("w-OI", "W-OI", "WiML")]
    found = []
    for few, many, design in pairs:
        two = [only(_papers(rows), query=query, design=design)["capacity"].median() for query in (few, many)]
        found.append(float(two[1] / two[0]))
    return Finding(f"TuMLSC {found[0]:.2f}, WiML {found[1]:.2f} of the throughput", max(found) < 1)


def _later(rows: pd.DataFrame) -> Finding:
    both = [
        pd.concat([_grown(part, "", design, "latency ms") for design in ("MQ", "MQLF")])
        for part in (_papers(rows), rows)
    ]
    ours = f"{_told(both[0])} times the latency with 2{_beyond(rows, _told(both[1]))}"
    return Finding(ours, bool(both[0].min() > 1))


def _sooner(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(_papers(rows), "OS", "TuMLSC", "MQ", "latency ms").groupby("query")["ratio"].median()
    beyond = _ratios(rows, "OS", "TuMLSC", "MQ", "latency ms").groupby("query")["ratio"].median()
    return Finding(f"TuMLSC's is {_told(ratios)} of MQ's{_beyond(rows, _told(beyond))}", bool(ratios.max() < 1))


def _wiml_soonest(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(_papers(rows), "OI", "WiML", "MQ", "latency ms").groupby("query")["ratio"].median()
    return Finding(f"WiML's is {_told(ratios)} of MQ's", bool(ratios.max() < 1))


def _wiml_constant(rows: pd.DataFrame) -> Finding:
    grown = _grown(_papers(rows), "OI", "WiML", "latency ms")
    ours = f"{_told(grown)} times the latency with 2{_beyond(rows, _told(_grown(rows, 'OI', 'WiML', 'latency ms')))}"
    return Finding(ours, bool(grown.max() < 1 / LITTLE))


def _columns(rows: pd.DataFrame) -> Finding:
    ordered, free = (
        _ratios(rows, kind, design, peer, "tuples/CPU s").groupby("query")["ratio"].median()
        for kind, design, peer in (("OS", "ColumnarTuMLSC", "TuMLSC"), ("OI", "ColumnarWiML", "MQ"))
    )
    return Finding(f"{_told(ordered)} times TuMLSC; {_told(free)} times MQ", bool(min(ordered.min(), free.min()) > 1))


SMALL_PART: Final = Cause(
    "compiled, to compare the heads of 20 queues takes a small part of the output thread's time for a tuple, of which Update takes most",
    "paper2-s-merge",
)

FIGURE = Figure(
    title="the designs on the queries of table 2",
    regime=(
        "Real threads on this machine: two that send and one that answers; 243 meters, 40,000 songs by Zipf's law with made-up comments. The "
        f"paper's text names {PAPERS} inputs at most, and its claims are judged up to there; what is beyond is ours. The paper has a thread "
        "for each input, on 24 logical cores: the table has thousands of tuples a second as the busiest thread would allow with a core for "
        "each, by the CPU seconds of each kind of thread, as fast as they go. Latency (ms) is from the call that made a winset complete to "
        f"its delivery, at {SHARE:.0%} of the highest rate of each design. Medians of {ROUNDS} rounds, all in turn."
    ),
    measure=measure,
    seeds=2,
    timing=True,
    claims=(
        Claim("the throughput of MQ and MQLF falls linearly as inputs grow", _falls, SMALL_PART),
        Claim("that of TuMLSC is rather stable", _stable),
        Claim("that of WiML grows", _wiml_grows),
        Claim("with 20 inputs TuMLSC has a higher throughput than MQ", _tumlsc, SMALL_PART),
        Claim("WiML has a higher throughput than MQ", _wiml),
        Claim("more windows for each tuple cost throughput", _windows),
        Claim("the latency of MQ and MQLF grows with the inputs", _later),
        Claim("with 20 inputs TuMLSC has a lower latency than MQ", _sooner),
        Claim("WiML has a lower latency than MQ", _wiml_soonest),
        Claim("and an almost constant one", _wiml_constant),
        Claim("(ours) the columnar designs do more in a CPU second of all threads", _columns),
    ),
    plots=(
        *(
            Plot(
                query, f"{query}, first round: tuples per second, a core for each thread", "inputs", "capacity", "design",
                {"query": query, "round": 0}, log="xy",
            )
            for query in ("k-OS", "K-OI")
        ),
        *(
            Plot(f"{query}-late", f"{query}, first round: latency (ms)", "inputs", "latency ms", "design", {"query": query, "round": 0}, log="xy")
            for query in ("k-OS", "k-OI")
        ),
    ),
    summary=summary,
)  # fmt: skip
