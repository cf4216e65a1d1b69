"""Figure 16: delays and arrivals of Game8, whose bursts are tuples that were held back."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.types import FloatArray, IntArray
from skypane.workloads import HeldBack, UniformDelay
from skypane.workloads.disorder.delays import Delays, ExponentialDelay
from skypane.workloads.estimators import counts, dispersion, late_share
from skypane.workloads.estimators.counts import summed
from skypane_papers.figure import Claim, Figure, Finding, Plot, in_each
from skypane_papers.games import GAMES, arrivals
from skypane_papers.rows import only
from skypane_papers.streams import event_times

GAME: Final = GAMES["G8"]
USUAL: Final = GAMES["G7"].mean_delay
"""Mean delay of tuples that are not held back, in seconds: that of Game7, which has G8's speed and longest delay."""
HOLD: Final = 1.0
"""Mean seconds of a hold: of the 150 to 200 holds of the recording, the longest then lasts for about 5.2 s."""
HELD: Final = GAME.mean_delay - USUAL
EVERY: Final = HOLD**2 / HELD - HOLD
"""Mean seconds between holds, so that holds add `HELD` to the mean delay: HELD = HOLD^2 / (EVERY + HOLD)."""
SLOT: Final = 100_000
DRAWN, HOLDING, EVEN = "bursts of the sources", "held back", "uniform delays"


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream and second of its second half, with the figures of the whole stream in each."""
    seconds = 40.0 if quick else 560.0
    streams = {
        DRAWN: arrivals(GAME, seconds, seed),
        HOLDING: _delayed(
            HeldBack(f"{EVERY} seconds", f"{HOLD} seconds", ExponentialDelay(f"{USUAL} seconds")), seconds, seed
        ),
        EVEN: _delayed(UniformDelay(f"{GAME.mean_delay} seconds"), seconds, seed),
    }
    return pd.concat([_by_second(name, *times, seconds) for name, times in streams.items()], ignore_index=True)


def _delayed(delays: Delays, seconds: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return event and arrival times in order of arrival, with Poisson event times."""
    rng = np.random.default_rng(16 + seed)
    event = event_times(GAME.rate, 1, seconds, rng)
    arrival = event + delays.start(1, rng)(event, np.zeros(len(event), np.int64))
    order = np.argsort(arrival, kind="stable")
    order = order[: int((arrival < seconds * 1e6).sum())]
    return event[order], arrival[order]


def _by_second(name: str, event: IntArray, arrival: IntArray, seconds: float) -> pd.DataFrame:
    delay, second = (arrival - event) / 1e6, arrival // 1_000_000
    tuples = np.bincount(second, minlength=int(seconds))
    mean = np.bincount(second, delay, minlength=int(seconds)) / np.maximum(tuples, 1)
    series = counts(arrival, SLOT)
    over = {f"Var / E at {size * SLOT / 1e6:g} s": _ratio(summed(series, size)) for size in (1, 10, 100)}
    half = slice(int(seconds) // 2, int(seconds))
    return pd.DataFrame({
        "stream": name, "second": np.arange(int(seconds))[half], "tuples": tuples[half], "delay": mean[half],
        "tuples/s": len(event) / seconds, "mean delay": float(delay.mean()), "longest": float(delay.max()),
        "late": late_share(event), "I": dispersion(arrival).value, **over,
        "correlation": float(np.corrcoef(tuples, mean)[0, 1]),
    })  # fmt: skip


def _ratio(sums: FloatArray) -> float:
    return float(sums.var() / sums.mean())


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each stream."""
    return rows.drop_duplicates("stream").drop(columns=["second", "tuples", "delay"])


def _of(rows: pd.DataFrame, name: str, column: str) -> float:
    return float(only(rows, stream=name)[column].iloc[0])


def _phases(rows: pd.DataFrame) -> Finding:
    delay = rows["delay"].to_numpy(float)
    ours = f"mean of a second {np.quantile(delay, 0.1) * 1e3:.0f} to {np.quantile(delay, 0.9) * 1e3:.0f} ms in 80 % of the seconds"
    return Finding(ours, bool(np.quantile(delay, 0.9) > 3 * np.quantile(delay, 0.1)))


def _together(rows: pd.DataFrame) -> Finding:
    found = float(rows["correlation"].iloc[0])
    return Finding(f"correlation {found:.2f}", found > 0.3)


def _uniform(rows: pd.DataFrame) -> Finding:
    even, held = (_of(rows, name, "I") for name in (EVEN, HOLDING))
    return Finding(f"index {even:.1f} with uniform delays, {held:,.0f} with tuples held back", even < 2 < held)


def _index(rows: pd.DataFrame) -> Finding:
    found = _of(rows, HOLDING, "I")
    return Finding(f"{found:,.0f} with tuples held back", abs(found / GAME.dispersion - 1) < 0.25)


def _limit(rows: pd.DataFrame) -> Finding:
    ratios = [_of(rows, HOLDING, f"Var / E at {length} s") for length in ("1", "10")]
    ours = f"{ratios[0]:,.0f} of counts of 1 s, {ratios[1]:,.0f} of 10 s"
    return Finding(ours, ratios[1] > 0.9 * ratios[0])


_BOTH: Final = {DRAWN: DRAWN, HOLDING: HOLDING}

FIGURE = Figure(
    title="delays and arrivals of Game8",
    regime=(
        "560 s with the speed and the delays of table 2, drawn in three ways: bursts of the sources with independent delays, as for figures 15 and 17; "
        f"Poisson arrivals that are held back for {HOLD:g} s on average each {EVERY + HOLD:.1f} s, so that the mean and the longest delay are those of Game8; and Poisson "
        "arrivals with uniform delays. Correlation: of the tuples that arrive in a second, and their mean delay."
    ),
    measure=measure,
    seeds=3,
    summary=summary,
    claims=(
        Claim("16a: delays are not uniform: phases of the stream have larger ones", in_each("stream", _BOTH, _phases)),
        Claim(
            "16b: bursts of arrivals are the phases in which tuples have a larger delay",
            in_each("stream", _BOTH, _together),
        ),
        Claim("6.1: the more uniform the delays, the lower the index of dispersion", _uniform),
        Claim("table 2: Game8 has an index of dispersion of 3,062", _index),
        Claim(
            "6.1: the index is the limit of Var / E of the counts as intervals grow, and bursts result from delays",
            _limit,
            contradiction="delays of at most 5.18 s add at most a constant to the variance of a count, and nothing to that limit",
        ),
    ),
    plots=tuple(
        Plot(letter, f"Figure 16{letter}: {title}, held back", "second", column, where={"stream": HOLDING})
        for letter, title, column in (("a", "mean delay (s)", "delay"), ("b", "arrivals in a second", "tuples"))
    ),
)
