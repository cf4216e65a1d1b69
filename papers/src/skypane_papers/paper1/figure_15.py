"""Figure 15: workers of both stages that real streams need, and the bandwidth that they offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.parallelism import Workers
from skypane.control.splitting import PaneRoundRobin, PidSplitting, Splitting
from skypane.runtime.sim.cost_models import BLOCK_NESTED_LOOPS, CostModel
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSample, SimulationSetup, simulate
from skypane.windows import Windows
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.games import GAMES, Game, arrivals
from skypane_papers.rows import at, only
from skypane_papers.summary import mean

WINDOWS: Final = Windows.of("1 s", "200 ms")
TOP_DELTA: Final = 1.75
"""Times as long as the skyline: 1.5 to 2 (section 4.3.3)."""
MOST: Final = 17
FASTEST: Final = ("G7", "G8")
KEPT_UP: Final = 0.97
"""Share of the windows that any number of workers would answer, from which on a stage keeps up."""
QUERIES: Final = {
    "skyline": BLOCK_NESTED_LOOPS,
    "top-delta": replace(
        BLOCK_NESTED_LOOPS,
        tuple_compare=TOP_DELTA * BLOCK_NESTED_LOOPS.tuple_compare,
        merge_compare=TOP_DELTA * BLOCK_NESTED_LOOPS.merge_compare,
    ),
}


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each query and game: n, m, the bandwidth of both stages and of one thread."""
    seconds, games = (12, ("G1", "G8")) if quick else (80, tuple(GAMES))
    return pd.DataFrame(
        [
            {"query": query, "game": name} | _row(GAMES[name], cost, seconds, seed)
            for query, cost in QUERIES.items()
            for name in games
        ]
    )


def _row(game: Game, cost: CostModel, seconds: float, seed: int) -> dict[str, float]:
    event, arrival = arrivals(game, seconds, seed)
    made = SimulatedStream.of(WINDOWS, event, arrival, 500_000)
    n = next((n for n in range(1, MOST) if mean(_run(made, cost, Workers(n, 1), None), "rho_plq") < 1), MOST)
    most = _offered(_run(made, cost, Workers(n, MOST), "WIN_FB"))
    for m in range(1, MOST):
        offered = _offered(_run(made, cost, Workers(n, m), "WIN_FB"))
        if offered >= KEPT_UP * most:
            break
    wanted = 1e6 / WINDOWS.slide
    whole = _run(made, cost, Workers(MOST, MOST), "WIN_FB", PaneRoundRobin())
    serial = min(wanted, sum(sampled.windows for sampled in whole) / sum(_work(sampled) for sampled in whole))
    return {"n": n, "m": m, "windows/s": offered, "serial": serial, "gain": offered / serial}


def _offered(shown: list[SimulationSample]) -> float:
    """Return the windows answered in a second."""
    return sum(sampled.windows for sampled in shown) / len(shown)


def _work(sampled: SimulationSample) -> float:
    """Return the seconds that one thread would take for what both stages did."""
    return float(np.sum(sampled.plq.busy) + (np.sum(sampled.wlq.busy) if sampled.wlq else 0))


def _run(
    made: SimulatedStream, cost: CostModel, workers: Workers, scheduling: str | None, policy: Splitting | None = None
) -> list[SimulationSample]:
    """Return what the second half of the stream showed; the last second is cut short."""
    setup = SimulationSetup(made, WINDOWS, cost, policy or PidSplitting(), workers, scheduling)
    shown = [sampled for sampled in simulate(setup) if sampled.time <= made.arrival[-1]]
    return shown[len(shown) // 2 :]


def _sums(rows: pd.DataFrame, figure: str) -> dict[str, float]:
    return {query: float(only(rows, query=query)[figure].sum()) for query in QUERIES}


def _second(rows: pd.DataFrame) -> Finding:
    n, m = _sums(rows, "n"), _sums(rows, "m")
    more = (rows["m"] >= rows["n"]).to_numpy(bool)
    return Finding(f"{sum(m.values()):.0f} against {sum(n.values()):.0f} workers in all", bool(more.all()))


def _top_delta(rows: pd.DataFrame) -> Finding:
    n, m = _sums(rows, "n"), _sums(rows, "m")
    both = {query: n[query] + m[query] for query in QUERIES}
    return Finding(f"{both['top-delta']:.0f} against {both['skyline']:.0f} in all", both["top-delta"] > both["skyline"])


def _fast(rows: pd.DataFrame) -> Finding:
    skyline = only(rows, query="skyline")
    total = {str(game): int(n + m) for game, n, m in zip(skyline["game"], skyline["n"], skyline["m"], strict=True)}
    ours = ", ".join(f"{game} {workers}" for game, workers in total.items())
    slower = max(workers for game, workers in total.items() if game not in FASTEST)
    return Finding(ours, all(total[game] > slower for game in FASTEST if game in total))


def _reached(rows: pd.DataFrame) -> Finding:
    least = float(rows["windows/s"].min())
    return Finding(f"at least {least:.2f} of 5 windows/s", least >= KEPT_UP * 1e6 / WINDOWS.slide)


def _gain(rows: pd.DataFrame) -> Finding:
    share = (rows["gain"] / (rows["n"] + rows["m"])).to_numpy(float)
    g8 = at(rows, "gain", query="skyline", game="G8")
    return Finding(f"{share.min():.0%} to {share.max():.0%} of their number; G8 {g8:.1f}", bool(share.min() > 0.7))


FIGURE = Figure(
    title="workers that the games need, and the bandwidth they offer",
    regime=(
        "Streams drawn to table 2's figures, windows of 1 s each 0.2 s, AS_PID and WIN_FB, in the papers' costs; top-delta "
        f"takes {TOP_DELTA} times as long. n: the least with rho < 1; m: the least that answers windows as they come; serial: both stages on one thread, panes whole."
    ),
    measure=measure,
    seeds=2,
    claims=(
        Claim("15a, c: the second stage needs more workers", _second),
        Claim("15c: top-delta needs more than the skyline", _top_delta),
        Claim("15a: the fastest games, G7 and G8, need the most", _fast),
        Claim(
            "15b, d: the bandwidth of 5 windows/s is reached everywhere",
            _reached,
            Cause(f"workers are counted by {KEPT_UP:.0%} of the windows that any number of them would answer", TABLE),
        ),
        Claim("15b, d: the gain is close to the number of workers", _gain),
    ),
    plots=(
        Plot("a", "Figure 15a: workers of the first stage", "game", "n", by="query", bars=True),
        Plot("c", "Figure 15c: workers of the second stage", "game", "m", by="query", bars=True),
        Plot("b", "Figure 15b, d: gain over one thread", "game", "gain", by="query", bars=True),
    ),
)
