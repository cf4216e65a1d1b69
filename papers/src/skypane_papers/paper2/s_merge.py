"""Sections 3 and 5: what the output thread spends on S-Merge, by the number of inputs, and what on all else."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.multiway_runs import PAPERS, QUERIES, S_MERGE, measured
from skypane_papers.rows import at

INPUTS: Final = (2, 5, 10, 20, 50, 200)
DESIGNS: Final = ("MQ", "MQLF", "TuMLSC")
ASKED: Final = {"S-Merge, ns": S_MERGE, "k-OS, ns": QUERIES["k-OS"], "K-OS, ns": QUERIES["K-OS"]}
ROUNDS: Final = 3
TUPLES: Final = 200_000
GROWN: Final = 5
"""How many times as long many inputs have to take: half of the ten times as many of the paper."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each round, number of inputs and design: CPU nanoseconds of the output thread for a tuple, by query."""
    found = []
    for turn in range(1 if quick else ROUNDS):
        for inputs in INPUTS[:2] if quick else INPUTS:
            for design in DESIGNS:
                row: dict[str, object] = {"round": turn, "inputs": inputs, "design": design}
                for name, query in ASKED.items():
                    done = measured(design, query, inputs, 10_000 if quick else TUPLES, seed=seed)
                    row[name] = 1e9 * done.output / done.tuples
                found.append(row)
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the medians of the rounds by the number of inputs and design."""
    return rows.groupby(["inputs", "design"], sort=False)[list(ASKED)].median().round(0).reset_index()


def merging(rows: pd.DataFrame, design: str, inputs: int, of: str = "S-Merge, ns") -> float:
    """Return the median over the rounds of a design's nanoseconds with so many inputs."""
    return at(summary(rows), of, design=design, inputs=inputs)


def _ends(rows: pd.DataFrame) -> tuple[int, int]:
    return int(rows["inputs"].min()), int(rows["inputs"].max())


def _linear(rows: pd.DataFrame) -> Finding:
    return _grown(rows, min(PAPERS, _ends(rows)[1]))


def _linear_beyond(rows: pd.DataFrame) -> Finding:
    return _grown(rows, _ends(rows)[1])


def _grown(rows: pd.DataFrame, many: int) -> Finding:
    """Compare S-Merge with so many inputs with that of the fewest."""
    few, _ = _ends(rows)
    told, enough = [], []
    for design in ("MQ", "MQLF"):
        less, more = merging(rows, design, few), merging(rows, design, many)
        told.append(
            f"{design} {less:.0f} ns with {few}, {more:.0f} with {many}: {(more - less) / (many - few):.1f} ns an input"
        )
        enough.append(more > GROWN * less)
    return Finding("; ".join(told), all(enough))


def _flat(rows: pd.DataFrame) -> Finding:
    few, many = _ends(rows)
    grown = [merging(rows, design, many) / merging(rows, design, few) for design in ("TuMLSC", "MQ")]
    return Finding(
        f"from {few} to {many} inputs {grown[0]:.1f} times as long, MQ's {grown[1]:.1f}", grown[0] < grown[1] / 3
    )


def _share(rows: pd.DataFrame) -> Finding:
    most = min(PAPERS, _ends(rows)[1])
    saved = merging(rows, "MQ", most) - merging(rows, "TuMLSC", most)
    told = [
        f"{100 * saved / merging(rows, 'MQ', most, of):.0f} % of {merging(rows, 'MQ', most, of):.0f} ns on {of.partition(',')[0]}"
        for of in ("k-OS, ns", "K-OS, ns")
    ]
    share = saved / merging(rows, "MQ", most, "K-OS, ns")
    return Finding(f"with {most} inputs a T-Gate saves {' and '.join(told)}", share < 0.1)


FIGURE = Figure(
    title="the output thread's S-Merge alone, and with Update",
    regime=(
        "Two real threads that send and one that answers, as fast as they go. With one window of one key the output thread does little but "
        "S-Merge; k-OS and K-OS are the whole of its work. CPU nanoseconds of that thread for a tuple, medians of three rounds, all in "
        "turn. CPU time is that of compiled loops: heads are compared in arrays."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim(
            f"to merge queues takes the output thread time in proportion to the inputs (here: {GROWN} times as long with {PAPERS} as with 2)",
            _linear,
            Cause(
                "a part of the work for a tuple does not depend on the inputs, and with few of them it is most of it",
                TABLE,
            ),
        ),
        Claim(f"(ours) with 200 inputs it takes {GROWN} times as long", _linear_beyond),
        Claim("from a T-Gate it takes ready tuples whatever the number of inputs", _flat),
        Claim("(ours) up to the paper's 20 inputs a T-Gate saves less than a tenth of its work on K-OS", _share),
    ),
    plots=(Plot("", "S-Merge of the output thread (CPU ns for a tuple)", "inputs", "S-Merge, ns", "design", log="xy"),),
    summary=summary,
)
