"""Figure 17: the latency of windows, with a K-slack punctuation and with drop budgets."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.progress import AqKSlack, KSlack
from skypane.progress.policy_yardstick import BatchedStream, PolicyRun, window_ends
from skypane.progress.progress_policy import ProgressPolicy
from skypane.windows import Windows
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.games import GAMES, Game, arrivals
from skypane_papers.rows import only

WINDOWS: Final = Windows.of("1 s", "200 ms")
BUDGETS: Final = (0.01, 0.02, 0.05)
BATCH: Final = 1_000
"""Tuples after each of which a policy may move: 50 ms to 0.1 s of these streams."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each game and punctuation."""
    seconds, games = (30, ("G1", "G8")) if quick else (240, tuple(GAMES))
    policies: dict[str, ProgressPolicy] = {"K-slack": KSlack()}
    policies |= {f"drop {budget:.0%}": AqKSlack(budget) for budget in BUDGETS}
    return pd.DataFrame([row for name in games for row in _rows(name, GAMES[name], policies, seconds, seed)])


def _rows(
    name: str, game: Game, policies: dict[str, ProgressPolicy], seconds: float, seed: int
) -> list[dict[str, object]]:
    event, _ = arrivals(game, seconds, seed)
    cut, ends = BatchedStream.of(event, WINDOWS, BATCH), window_ends(event, WINDOWS)
    ends = ends[ends > ends[0] + (ends[-1] - ends[0]) // 4]  # after the policies have seen some of the stream
    rows = []
    for label, policy in policies.items():
        run = PolicyRun.of(policy, cut)
        lag, done = run.answered(ends)
        # A window that is not answered within the stream waits at least until the stream's end.
        lag = np.where(done, lag, run.newest[-1] - ends)
        length = WINDOWS.length / 1e6
        rows.append(
            {
                "game": name,
                "punctuation": label,
                "latency": float(lag.mean() / 1e6) + length,
                "dropped": float(run.dropped[-1] / run.seen[-1]),
            }
        )
    return rows


def _ratios(rows: pd.DataFrame, tested: str, against: str = "K-slack") -> list[float]:
    pair = rows.pivot_table(index="game", columns="punctuation", values="latency", sort=False)
    return [float(ratio) for ratio in pair[against] / pair[tested]]


def _near_longest(rows: pd.DataFrame) -> Finding:
    found = only(rows, punctuation="K-slack").set_index("game")["latency"]
    shares = [float(found[name]) / GAMES[str(name)].longest_delay for name in found.index]
    ours = f"{min(shares):.0%} to {max(shares):.0%} of it"
    return Finding(ours, bool(np.median(shares) > 0.5))


def _order_of_magnitude(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(rows, "drop 1%")
    ours = f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} times less"
    return Finding(ours, float(np.median(ratios)) >= 10)


def _more_budget(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(rows, "drop 5%", "drop 1%")
    ours = f"a budget of 5 % instead of 1 %: {min(ratios):.2f} to {max(ratios):.2f} times less"
    return Finding(ours, min(ratios) >= 1)


def _kept(rows: pd.DataFrame) -> Finding:
    budgeted = rows[rows["punctuation"] != "K-slack"]
    dropped = {f"{budget:.0%}": only(budgeted, punctuation=f"drop {budget:.0%}")["dropped"].max() for budget in BUDGETS}
    ours = ", ".join(f"{float(share):.2%} of {budget}" for budget, share in dropped.items())
    return Finding(f"at most {ours}", all(float(share) <= float(b[:-1]) / 100 for b, share in dropped.items()))


FIGURE = Figure(
    title="latency of a window with K-slack and with drop budgets",
    regime=(
        "240 s of streams drawn to table 2's speed, delays and burstiness (the games' recordings are not public any more), "
        "windows of 1 s each 0.2 s; seconds of event time from a window's start to its answer."
    ),
    measure=measure,
    seeds=3,
    claims=(
        Claim("K-slack approaches the longest delay (here: to more than half of it in the median game)", _near_longest),
        Claim("a drop budget of 1 % cuts the latency by an order of magnitude", _order_of_magnitude),
        Claim("larger budgets cut more", _more_budget),
        Claim("(not the paper's) the budgets are kept", _kept),
    ),
    plots=(Plot("", "Figure 17: latency of a window (s)", "game", "latency", by="punctuation", bars=True, log="y"),),
)
