"""Figures 28 to 34: TuMLMC with one and more update threads, on the order-sensitive queries."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import QUERIES, measured
from skypane_papers.rows import at

THREADS: Final = (1, 2, 3)
INPUTS: Final = (2, 20)
UPDATING: Final = "updating, CPU ns of a thread"


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each query, number of inputs and of update threads."""
    found = []
    for query in ("k-OS",) if quick else [query for query in QUERIES if query.endswith("OS")]:
        for inputs in INPUTS[1:] if quick else INPUTS:
            for threads in THREADS[:2] if quick else THREADS:
                run = measured(f"TuMLMC-{threads}", query, inputs, 60_000 if quick else 300_000, seed=seed)
                found.append(
                    {
                        "query": query, "inputs": inputs, "update threads": threads, "tuples/s": run.rate,
                        UPDATING: 1e9 * run.updating / run.tuples / threads,
                        "adding, CPU ns": 1e9 * run.adding / run.tuples,
                    }
                )  # fmt: skip
    return pd.DataFrame(found).round(1)


def _less_each(rows: pd.DataFrame) -> Finding:
    two = [rows[rows["update threads"] == threads][UPDATING].median() for threads in (1, 2)]
    return Finding(f"{two[0]:.0f} ns a tuple alone, {two[1]:.0f} for each of two", two[1] < 0.8 * two[0])


def _keeps(rows: pd.DataFrame) -> Finding:
    one, most = (rows[rows["update threads"] == threads]["tuples/s"].median() for threads in (1, max(THREADS)))
    return Finding(f"{most / one:.2f} of one thread's throughput at {max(THREADS)}, on two cores", most > 0.8 * one)


def _more_keys(rows: pd.DataFrame) -> Finding:
    most = rows["update threads"].max()
    (few, fewer), (many, less) = (
        [at(rows, UPDATING, query=query, inputs=20, **{"update threads": threads}) for threads in (1, most)]
        for query in ("k-OS", "K-OS")
    )
    ours = (
        f"updating takes {many / few:.1f} times as long with 40,000 keys as with 243; each of {most} threads has "
        f"{less / many:.2f} and {fewer / few:.2f} of one's time"
    )
    return Finding(ours, many > few and less / many < fewer / few)


FIGURE = Figure(
    title="TuMLMC and its update threads",
    regime=(
        "Real threads: two that send, one that answers, and the update threads, on the cores of this machine: where the paper has twelve, "
        "what each thread has to do is what can be compared here, not how the wall time falls."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("each of two update threads has less to do for a tuple than one alone", _less_each),
        Claim("throughput does not fall with more threads than it needs", _keeps),
        Claim("more keys make updates longer, from which more threads gain more", _more_keys),
    ),
    plots=(
        Plot(
            "",
            "TuMLMC: CPU ns of an update thread for a tuple",
            "update threads",
            UPDATING,
            "query",
            {"inputs": 20},
        ),
    ),
)
