"""Figures 13 to 27: throughput and latency of the designs on the twelve queries of table 2, over the number of inputs."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import QUERIES, measured
from skypane_papers.rows import only

INPUTS: Final = (2, 20, 200)
ORDERED: Final = ("MQ", "MQLF", "TuMLSC", "ColumnarTuMLSC")
UNORDERED: Final = ("MQ", "MQLF", "WiML", "ColumnarWiML")


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each query, number of inputs and design."""
    found = []
    for query in ("k-OS", "k-OI", "K-OI") if quick else QUERIES:
        for inputs in INPUTS[:1] if quick else INPUTS:
            tuples = 20_000 if quick else 400_000 if inputs < INPUTS[-1] else 200_000
            for design in ORDERED if query.endswith("OS") else UNORDERED:
                run = measured(design, query, inputs, tuples)
                found.append(
                    {
                        "query": query, "inputs": inputs, "design": design, "tuples/s": run.rate,
                        "tuples/CPU s": run.tuples / run.cpu, "capacity": run.capacity(inputs), "latency ms": 1e3 * float(pd.Series(run.late).median()),
                    }
                )  # fmt: skip
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each query and number of inputs: thousands of tuples a second by design, with a core for each thread."""
    wide = rows.assign(thousands=rows["capacity"] / 1e3).pivot_table(
        index=["query", "inputs"], columns="design", values="thousands", sort=False
    )
    order = [design for design in dict.fromkeys((*ORDERED, *UNORDERED)) if design in wide]
    return wide[order].round(0).reset_index()


def _ratio(rows: pd.DataFrame, query: str, over: str, under: str, figure: str = "capacity") -> pd.Series[float]:
    """Return one design's figure over another's by the number of inputs."""
    two = [only(rows, query=query, design=design).set_index("inputs")[figure] for design in (over, under)]
    return two[0] / two[1]


def _falls(rows: pd.DataFrame) -> Finding:
    few, many = int(rows["inputs"].min()), int(rows["inputs"].max())
    falls = []
    for design in ("MQ", "MQLF"):
        mine = only(rows, design=design).pivot_table(index="query", columns="inputs", values="capacity")
        falls.append(float((mine[few] / mine[many]).median()))
    return Finding(f"from {few} to {many} inputs MQ falls {falls[0]:.1f} and MQLF {falls[1]:.1f} times", min(falls) > 2)


def _tumlsc(rows: pd.DataFrame) -> Finding:
    ratios = [
        _ratio(rows, query, "TuMLSC", "MQ").iloc[-1]
        for query in QUERIES
        if query in set(rows["query"]) and "OS" in query
    ]
    most = int(rows["inputs"].max())
    return Finding(f"at {most} inputs {min(ratios):.1f} to {max(ratios):.1f} times MQ", min(ratios) > 1)


def _wiml(rows: pd.DataFrame) -> Finding:
    ratios = [
        _ratio(rows, query, "WiML", "MQ").iloc[-1] for query in QUERIES if query in set(rows["query"]) and "OI" in query
    ]
    most = int(rows["inputs"].max())
    return Finding(f"at {most} inputs {min(ratios):.1f} to {max(ratios):.1f} times MQ", min(ratios) > 1)


def _windows(rows: pd.DataFrame) -> Finding:
    pairs = [("w-OS", "W-OS", "TuMLSC"), ("w-OI", "W-OI", "WiML")]
    found = []
    for few, many, design in pairs:
        two = [only(rows, query=query, design=design)["capacity"].median() for query in (few, many)]
        found.append(float(two[1] / two[0]))
    return Finding(f"TuMLSC {found[0]:.2f}, WiML {found[1]:.2f} of the throughput", max(found) < 1)


def _late(rows: pd.DataFrame) -> Finding:
    ratios = [_ratio(rows, query, "WiML", "MQ", "latency ms").median() for query in set(rows["query"]) if "OI" in query]
    return Finding(f"WiML's is {min(ratios):.3f} to {max(ratios):.3f} of MQ's", max(ratios) < 1)


def _columns(rows: pd.DataFrame) -> Finding:
    ordered = [
        _ratio(rows, query, "ColumnarTuMLSC", "TuMLSC", "tuples/CPU s").median()
        for query in set(rows["query"])
        if "OS" in query
    ]
    free = [
        _ratio(rows, query, "ColumnarWiML", "MQ", "tuples/CPU s").median()
        for query in set(rows["query"])
        if "OI" in query
    ]
    return Finding(
        f"{min(ordered):.1f} to {max(ordered):.1f} times TuMLSC; {min(free):.1f} to {max(free):.1f} times MQ",
        min(*ordered, *free) > 1,
    )


FIGURE = Figure(
    title="the designs on the queries of table 2",
    regime=(
        "Real threads on this machine: two that send and one that answers, as fast as they go; 243 meters, 40,000 songs by Zipf's law "
        "with made-up comments. The paper has a thread for each input, on 24 logical cores: the table has thousands of tuples a second as "
        "the busiest thread would allow with a core for each, by the CPU seconds of each kind of thread. Latency is from the call that "
        "made a winset complete to its delivery, with full queues."
    ),
    measure=measure,
    claims=(
        Claim("the throughput of MQ and MQLF falls as inputs grow", _falls),
        Claim("TuMLSC has a higher throughput than MQ", _tumlsc),
        Claim("WiML has a higher throughput than MQ", _wiml),
        Claim("more windows for each tuple cost throughput", _windows),
        Claim("WiML has the lowest latency", _late),
        Claim("(ours) the columnar designs do more in a CPU second of all threads", _columns),
    ),
    plots=(
        Plot(
            "k-OS",
            "k-OS: tuples per second, a core for each thread",
            "inputs",
            "capacity",
            "design",
            {"query": "k-OS"},
            log="xy",
        ),
        Plot(
            "K-OI",
            "K-OI: tuples per second, a core for each thread",
            "inputs",
            "capacity",
            "design",
            {"query": "K-OI"},
            log="xy",
        ),
        Plot("late", "k-OI: latency (ms)", "inputs", "latency ms", "design", {"query": "k-OI"}, log="xy"),
    ),
    summary=summary,
)
