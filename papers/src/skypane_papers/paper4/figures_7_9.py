"""Figures 7 to 9 and table I: the balance of owned points, by strategy and queue capacity."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.farms import WORKERS, run, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only
from skypane_papers.sim.skyline_farm import OWNERS

RATE: Final = 100_000
WINDOW: Final = 10.0
KIND: Final = "independent"
QUEUES: Final = {"RR": (1, 5, 100, 10_000), "OD": (1, 5, 30), "LLW": (1, 5, 100, 10_000), "LLW+": (1, 5, 100, 10_000)}
TABLE: Final = {
    ("RR", 1): (64.02, 229.18), ("RR", 5): (64.20, 230.88), ("RR", 100): (64.54, 246.26), ("RR", 10_000): (70.06, 424.65),
    ("OD", 1): (34.13, 1790.67), ("OD", 5): (581.45, 3948.31),
    ("LLW", 1): (3.15, 4.28), ("LLW", 5): (3.64, 4.60), ("LLW", 100): (12.93, 136.26), ("LLW", 10_000): (104.60, 16483.29),
    ("LLW+", 1): (2.55, 4.05), ("LLW+", 5): (2.61, 4.33), ("LLW+", 100): (10.89, 23.06), ("LLW+", 10_000): (50.90, 280.42),
}  # fmt: skip
"""Mean and variance of the load difference, as the paper prints them."""
_SAMPLES: Final = 100


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return the load difference of each strategy and queue at `_SAMPLES` moments, with its mean and variance."""
    some = stream(KIND, *((4_000, 1.0) if quick else (RATE, WINDOW)), beyond=1.0, seed=seed)
    n = len(some.times)
    parts = []
    for owner in OWNERS:
        for queue in QUEUES[owner]:
            shown = run(KIND, some, WORKERS, owner, queue)
            full = shown.difference[n // 2 :]
            moments = slice(0, None, max(1, n // _SAMPLES))
            parts.append(pd.DataFrame({
                "strategy": owner, "queue": queue, "places": f"{owner} {queue:,}", "second": shown.done[moments],
                "difference": shown.difference[moments], "mean": full.mean(), "variance": full.var(),
            }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return table I, ours beside the paper's."""
    table = rows.drop_duplicates(["strategy", "queue"])[["strategy", "queue", "mean", "variance"]]
    known = zip(map(str, table["strategy"]), map(int, table["queue"]), strict=True)
    theirs = [TABLE.get(key, (float("nan"), float("nan"))) for key in known]
    return table.assign(**{"mean paper": [t[0] for t in theirs], "variance paper": [t[1] for t in theirs]})


def _means(rows: pd.DataFrame, owner: str) -> dict[int, float]:
    found = only(summary(rows), strategy=owner)
    return {int(queue): float(mean) for queue, mean in zip(found["queue"], found["mean"], strict=True)}


def _demand(rows: pd.DataFrame) -> Finding:
    means = _means(rows, "OD")
    return Finding(", ".join(f"{queue}: {mean:,.0f}" for queue, mean in means.items()), means[1] < means[5] < means[30])


def _least(rows: pd.DataFrame) -> Finding:
    ours, other = _means(rows, "LLW+"), _means(rows, "LLW")
    told = ", ".join(f"{queue:,}: {ours[queue]:.1f} and {other[queue]:.1f}" for queue in ours)
    return Finding(told, all(ours[queue] <= other[queue] + 0.05 for queue in ours))


def _blind(rows: pd.DataFrame) -> Finding:
    means = list(_means(rows, "RR").values())
    return Finding(f"{min(means):.0f} to {max(means):.0f}", max(means) < 1.2 * min(means) and 45 < means[0] < 85)


def _longer(rows: pd.DataFrame) -> Finding:
    found = {owner: _means(rows, owner) for owner in ("LLW", "LLW+")}
    told = "; ".join(f"{owner} {', '.join(f'{mean:.1f}' for mean in means.values())}" for owner, means in found.items())
    return Finding(told, all(means[1] <= means[100] <= means[10_000] for means in found.values()))


def _winner(rows: pd.DataFrame) -> Finding:
    table = summary(rows)
    best = {
        queue: str(only(table, queue=queue).sort_values("mean")["strategy"].iloc[0]) for queue in (1, 5, 100, 10_000)
    }
    variance = at(table, "variance", strategy="LLW+", queue=10_000), at(table, "variance", strategy="LLW", queue=10_000)
    told = ", ".join(f"{queue:,}: {owner}" for queue, owner in best.items())
    return Finding(f"{told}; variance {variance[0]:,.0f} and {variance[1]:,.0f} at 10K", set(best.values()) == {"LLW+"})


FIGURE = Figure(
    title="load difference by strategy and places in the queues (figures 7, 8, 9, table I)",
    regime=(
        "100K independent points/s, a window of 10 s, 12 workers, in the costs of the paper's machine, in which this is a "
        "bottleneck; points at the most loaded worker less those at the least loaded one, once the window is full."
    ),
    measure=measure,
    seeds=3,
    summary=summary,
    claims=(
        Claim("7a: OD is the less even the longer the queues: 34 with one place, 581 with five", _demand),
        Claim("7b, 8: LLW and LLW+ are the less even the longer the queues", _longer),
        Claim("8: the difference of LLW+ is smaller than that of LLW", _least),
        Claim("table I: RR has 64 to 70, whatever the queues", _blind),
        Claim("9, table I: LLW+ is the winner with queues of any size", _winner),
    ),
    plots=(
        *(
            Plot(letter, f"Figure {letter}: load difference with {owner}", "second", "difference", "places", {"strategy": owner})
            for letter, owner in (("7a", "OD"), ("7b", "LLW"), ("8", "LLW+"))
        ),
        Plot("9a", "Figure 9a: queues of one place", "second", "difference", "strategy", {"queue": 1}),
        Plot("9b", "Figure 9b: queues of 10,000 places", "second", "difference", "strategy", {"queue": 10_000}),
    ),
)  # fmt: skip
