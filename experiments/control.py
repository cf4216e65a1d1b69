"""Splitting and window scheduling on more workers than one machine has, beside what papers 1 and 5 report.

    python -m experiments.control [docs]

simulates the papers' streams in the papers' cost regime, and writes two tables into docs/control.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench.record import replace_between

from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.explaining import FuzzyPolicy
from skypane.control.splitting import POLICIES, PidSplitting
from skypane.control.workers import Workers
from skypane.runtime.sim.costs import BLOCK_NESTED_LOOPS, INDEPENDENT_8D, CostModel
from skypane.runtime.sim.farm import Stream
from skypane.runtime.sim.simulation import Sampled, Setup, simulate
from skypane.windows import Windows
from skypane.workloads import Map2, Poisson

PANES = Windows.of("100 ms")
OVERLAPPING = Windows.of("1 s", "200 ms")
WORKERS = (5, 7, 12, 17)
BURSTS = (1, 1_000, 2_500, 6_000, 15_000)
HEAVY_MERGES = CostModel(INDEPENDENT_8D, 1e-6, 45e-9, merge_base=1e-4, merge_row=1e-7, merge_compare=40e-9)
"""So that a window task takes orders of magnitude longer than a tuple, as paper 5 has it (section 5.3)."""


def stream(rate: float, dispersion: float, windows: Windows, seconds: int) -> Stream:
    """Return arrivals with delays of up to 0.4 s (0.2 on average), whose panes wait as long."""
    rng, until, chunks = np.random.default_rng(0), seconds * 1_000_000, []
    for chunk in (Map2(rate, dispersion) if dispersion > 1 else Poisson(rate)).times(rng):
        chunks.append(chunk)
        if chunk[-1] >= until:
            break
    event = np.concatenate(chunks)
    event = event[event < until]
    arrival = event + rng.integers(0, 400_000, len(event))
    order = np.argsort(arrival, kind="stable")
    return Stream.of(windows, event[order], arrival[order], 400_000)


def mean(shown: Sequence[Sampled], name: str) -> float:
    """Return the mean over the intervals that know the value."""
    return float(np.nanmean([getattr(sampled, name) for sampled in shown]))


def figure_8() -> str:
    """Return rho, sigma and selected tuples per pane by law, burstiness and workers (paper 1, figure 8)."""
    lines = [f"| I (sd of pane sizes) | law | {' | '.join(f'n = {n}' for n in WORKERS)} |", "|---|---|" + "---|" * 4]
    for dispersion in BURSTS:
        made = stream(100_000, dispersion, PANES, 60)
        sizes = np.bincount(made.pane)
        for law in POLICIES.values():
            cells = []
            for workers in WORKERS:
                setup = Setup(made, PANES, BLOCK_NESTED_LOOPS, law, Workers(workers, 1), scheduling=None)
                shown = list(simulate(setup))[20:]
                rho, sigma, selected = (mean(shown, name) for name in ("rho_plq", "sigma", "selected"))
                cells.append(f"{rho:.2f} / {sigma:.2f} / {selected:,.0f}")
            lines.append(f"| {dispersion:,} ({sizes.std() / sizes.mean():.0%}) | {law.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figures_12_and_13() -> str:
    """Return workers and idle time of the window level with and without MERGE (paper 5, figures 12 and 13)."""
    lines = [
        "| scheduling | m, mean | rho | idle workers, mean | MERGE tasks | windows/s |",
        "|---|---|---|---|---|---|",
    ]
    made = stream(30_000, 1_000, OVERLAPPING, 180)
    for scheduling in ("WIN_FB", "WIN_FB_MERGE"):
        elastic = Elastic(FuzzyPolicy(), most=60, start=Workers(2, 1))
        setup = Setup(made, OVERLAPPING, HEAVY_MERGES, PidSplitting(), elastic.start, scheduling, elastic, 0.25)
        shown = list(simulate(setup))[120:]
        idle = np.mean([sampled.idle_wlq * sampled.workers.wlq for sampled in shown])
        merges, updates = (sum(getattr(sampled, kind) for sampled in shown) for kind in ("merges", "updates"))
        windows = sum(sampled.windows for sampled in shown) / (len(shown) * 0.25)
        workers = np.mean([sampled.workers.wlq for sampled in shown])
        lines.append(
            f"| {scheduling} | {workers:.1f} | {mean(shown, 'rho_wlq'):.2f} | {idle:.1f} "
            f"| {merges / (merges + updates):.0%} | {windows:.2f} |"
        )
    return "\n".join(lines)


def main(docs: Path) -> None:
    """Simulate, and write the tables into docs/control.md."""
    for name, text in (("splitting", figure_8()), ("merging", figures_12_and_13())):
        sys.stdout.write(f"{text}\n\n")
        replace_between(docs / "control.md", name, text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
