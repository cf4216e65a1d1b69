"""Table 2: speed, delays and burstiness of eight recorded streams, and those of the streams that replace them."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane.workloads.estimators import dispersion, late_share
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.games import GAMES, arrivals

MILLIONS: Final = {
    "G1": (7.12, 5.94), "G2": (4.02, 3.49), "G3": (12.64, 10.67), "G4": (7.67, 6.66),
    "G5": (10.57, 9.14), "G6": (6.90, 5.98), "G7": (24.58, 21.64), "G8": (12.92, 12.14),
}  # fmt: skip
"""Tuples and late arrivals of the paper's streams, in millions."""
LEVELS: Final = {"severe": ("G1", "G8"), "moderate": ("G3", "G5"), "no bursts": ("G2", "G4", "G6", "G7")}


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each game: ours beside the paper's."""
    seconds, rows = 30 if quick else 240, []
    for name, game in GAMES.items():
        event, arrival = arrivals(game, seconds, seed)
        delay = (arrival - event) / 1e6
        tuples, late = MILLIONS[name]
        rows.append({
            "game": name,
            "tuples/s": len(event) / seconds, "tuples/s paper": game.rate,
            "late": late_share(event), "late paper": late / tuples,
            "mean delay": float(delay.mean()), "mean delay paper": game.mean_delay,
            "longest": float(delay.max()), "longest paper": game.longest_delay,
            "I": dispersion(arrival).value, "I paper": game.dispersion,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _drawn(rows: pd.DataFrame, column: str, within: float) -> Finding:
    off = (rows[column] / rows[f"{column} paper"] - 1).abs()
    return Finding(f"median {off.median():.0%} off, {off.max():.0%} at most", bool(off.max() <= within))


def _late(rows: pd.DataFrame) -> Finding:
    ours = ", ".join(f"{name} {share:.0%}" for name, share in zip(rows["game"], rows["late"], strict=True))
    return Finding(ours, bool(((rows["late"] - rows["late paper"]).abs() < 0.05).all()))


def _levels(rows: pd.DataFrame) -> Finding:
    told = {level: [float(i) for i in rows[rows["game"].isin(names)]["I paper"]] for level, names in LEVELS.items()}
    ours = "; ".join(f"{level} {min(found):,.0f} to {max(found):,.0f}" for level, found in told.items())
    return Finding(f"{ours}; figure 5b calls 100 remarkable", not any(found > 100 for found in told["no bursts"]))


def _tens(rows: pd.DataFrame) -> Finding:
    means, longest = rows["mean delay paper"], rows["longest paper"]
    ours = (
        f"its rows: {means.min() * 1e3:.0f} to {means.max() * 1e3:.0f} ms, {longest.min():.0f} to {longest.max():.0f} s"
    )
    return Finding(ours, bool(means.max() < 0.1 and longest.between(10, 100).all()))


FIGURE = Figure(
    title="speed, delays and burstiness of the games",
    regime="240 s of streams drawn to the table's speed, delays and burstiness, as figures 15 and 17 take them; late: share of the tuples.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("speeds of 8.5K to 23K tuples/s", lambda rows: _drawn(rows, "tuples/s", 0.25)),
        Claim(
            "average delays",
            lambda rows: _drawn(rows, "mean delay", 0.15),
            Cause(
                "tuples whose delay leads beyond the 240 s are missing, most of them where delays reach 142 and 171 s",
                TABLE,
            ),
        ),
        Claim("longest delays", lambda rows: _drawn(rows, "longest", 0.1)),
        Claim("indices of dispersion", lambda rows: _drawn(rows, "I", 0.25)),
        Claim("83 to 94 % of the tuples arrive late", _late),
        Claim(
            "6.1: average delays of tens of milliseconds, peaks of tens of seconds",
            _tens,
            contradiction="Game8's average is 265 ms, and peaks are 5 to 171 s in the table",
        ),
        Claim(
            "G2, G4, G6, G7 have no bursts, G3, G5 moderate, G1, G8 severe ones",
            _levels,
            contradiction="figure 5b calls an index of 100 remarkable, the table 207 no bursts",
        ),
    ),
    plots=(
        Plot("", "Table 2: index of dispersion", "game", "I", bars=True, log="y"),
        Plot("-late", "Table 2: share of late arrivals", "game", "late", bars=True),
    ),
)
