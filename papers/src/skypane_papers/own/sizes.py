"""The gain from knowing a batch's pane sizes before its rows move, compared with those of the last batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.costs import DEFAULT_COSTS
from skypane.control.splitting import AdaptiveSplitting, Routing, SplittingSample, UpcomingBatch
from skypane.control.splitting.expected import ExpectedPanes
from skypane.runtime.sim.cost_models import KERNELS
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at
from skypane_papers.streams import disordered, event_times

RATE: Final = 100_000
PANE: Final = 100_000
"""Microseconds."""
BATCH: Final = 1_000_000
"""Microseconds of arrivals that are a micro-batch."""
BURSTS: Final = (1, 1_000, 2_500, 6_000, 15_000)
WORKERS: Final = (4, 16)
COUNTING: Final = DEFAULT_COSTS.exchange
"""Seconds that a pass for the counts takes at the least: one exchange of hardly any rows, its scan left out."""


def batches(dispersion: float, seconds: float, seed: int) -> Iterator[dict[int, int]]:
    """Yield the rows of each pane of each batch."""
    rng = np.random.default_rng(6 + seed)
    event, arrival = disordered(event_times(RATE, dispersion, seconds, rng), 400_000, rng)
    panes, batch = event // PANE, arrival // BATCH
    for number in range(int(batch[-1])):
        found, counts = np.unique(panes[batch == number], return_counts=True)
        yield dict(zip(found.tolist(), counts.tolist(), strict=True))


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each burst level, number of workers, and source of the sizes."""
    return pd.DataFrame(
        [
            {"I": dispersion, "workers": workers, "sizes": sizes} | _run(made, workers, exact=sizes == "exact")
            for dispersion in BURSTS
            for made in [list(batches(dispersion, 6 if quick else 60, seed))]
            for workers in WORKERS
            for sizes in ("exact", "last batch")
        ]
    )


def _run(made: list[dict[int, int]], workers: int, *, exact: bool) -> dict[str, float]:
    """Route each batch by AS, and return the mean of what its slowest task waits beyond an even share, and sigma."""
    policy, state, expected = AdaptiveSplitting(), AdaptiveSplitting().init(), ExpectedPanes()
    beyond, uneven, sigmas = [], [], []
    for rows in made:
        known = rows if exact else expected.next()
        state, decision = policy.decide(state, UpcomingBatch(known, workers, open_from=max(known, default=0) + 1))
        loads, sizes = _sent(decision.value, rows)
        state, expected = policy.observe(state, SplittingSample(None, tuple(sizes))), expected.observe(rows)
        beyond.append((loads.max() - loads.mean()) * KERNELS.tuple_base)
        uneven.append(loads.max() / loads.mean())
        sigmas.append(len(sizes) / len(rows))
    settled = slice(len(made) // 4, None)
    return {
        "slowest over mean": float(np.mean(uneven[settled])),
        "waits (ms)": float(np.mean(beyond[settled])) * 1e3,
        "sigma": float(np.mean(sigmas[settled])),
    }


def _sent(routing: Routing, rows: Mapping[int, int]) -> tuple[np.ndarray, list[int]]:
    """Return the rows of each worker, and of each partition: a pane is spread in the proportions of its shares."""
    loads, sizes = np.zeros(routing.workers), []
    for pane, count in rows.items():
        shares = routing.shares.get(pane)
        parts = {routing.owner(pane): 1.0} if shares is None else {}
        for share in shares or ():
            parts[share.worker] = parts.get(share.worker, 0.0) + share.rows / sum(one.rows for one in shares or ())
        for worker, part in parts.items():
            loads[worker] += count * part
            sizes.append(round(count * part))
    return loads, sizes


def _saved(rows: pd.DataFrame) -> list[float]:
    """Return the milliseconds a batch that exact sizes save, by burst level and number of workers."""
    return [
        at(rows, "waits (ms)", I=i, workers=n, sizes="last batch")
        - at(rows, "waits (ms)", I=i, workers=n, sizes="exact")
        for i in BURSTS
        for n in WORKERS
    ]


def _balance(rows: pd.DataFrame) -> Finding:
    bursty = _saved(rows)[len(WORKERS) :]
    return Finding(f"{min(bursty):.1f} to {max(bursty):.1f} ms a batch", min(bursty) > 0)


def _worth(rows: pd.DataFrame) -> Finding:
    saved = max(_saved(rows))
    return Finding(
        f"it saves at most {saved:.1f} ms and takes at least {COUNTING * 1e3:.0f} ms", saved < COUNTING * 1e3
    )


FIGURE = Figure(
    title="sizes of panes: counted before rows move, or those of the last batch",
    regime=(
        f"{RATE:,} tuples/s, panes of 0.1 s, delays of 0.2 s on average, batches of 1 s, AS in its batch form, with the costs "
        "of our kernels; what the slowest task of a batch takes beyond an even share."
    ),
    measure=measure,
    seeds=3,
    claims=(
        Claim("(ours) under bursts, exact sizes balance batches better", _balance),
        Claim("(ours) a pass over the rows costs more than it saves", _worth),
    ),
    plots=(
        Plot(
            "", "Slowest task over the mean, 16 workers", "I", "slowest over mean", "sizes", {"workers": 16}, bars=True
        ),
    ),
)
