"""Costs and misses of the three elasticity policies on the same streams, compared with the best constant numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from skypane.control.elasticity.forecasting_policy import ModelPolicy
from skypane.control.elasticity.fuzzy import AS_RUN
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.situation import ScalingPolicy
from skypane.control.elasticity.threshold import ThresholdPolicy
from skypane.control.parallelism import Workers
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSample
from skypane.types import FloatArray
from skypane_papers.elastic import GAME1, OVERLAPPING, QUICK, SETPOINT, SOURCES, N, Run
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

STREAMS = (SOURCES[0], SOURCES[1], SOURCES[5], GAME1)
POLICIES: dict[str, ScalingPolicy] = {
    "fuzzy": FuzzyPolicy(),
    "fuzzy, as run": FuzzyPolicy(AS_RUN),
    "model": ModelPolicy(headroom=1 - SETPOINT),
    "threshold": ThresholdPolicy(target=SETPOINT),
}
EVERY = 10


PROMISE = 0.95
"""The share of windows whose latency is compared: constant numbers have to answer as many as soon as the fuzzy controller."""


def measure(quick: bool, traces: Path | None = None, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream and policy."""
    found = []
    for source in STREAMS[1:2] if quick else STREAMS:
        stream = source.stream(OVERLAPPING, QUICK if quick else SECONDS, traces, seed)
        runs = {name: Run(policy=policy).over(stream) for name, policy in POLICIES.items()}
        runs["fuzzy, idle ones stay"] = Run(policy=FuzzyPolicy(), idle_timeout=0).over(stream)
        promise = float(np.quantile(latencies(runs["fuzzy"]), PROMISE))
        runs[CONSTANT] = best_constant(stream, promise, LANES[3:4] if quick else LANES)
        found += [{"stream": source.name, "policy": name} | capacity(shown) for name, shown in runs.items()]
    return pd.DataFrame(found)


CONSTANT = "constant"
SECONDS = 100.0
LANES = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""Pane workers that are tried as constant numbers."""


def best_constant(
    stream: SimulatedStream, promise: float, lanes: Sequence[int] = LANES, most: int = N
) -> list[SimulationSample]:
    """Return the run with the fewest constant workers whose latency keeps a promise; if none does, the one that comes closest.

    The search knows the whole stream, which no policy can. For each number of pane workers, window workers are found by
    bisection.
    """

    def run(n: int, m: int) -> list[SimulationSample]:
        return Run(policy=None, start=Workers(n, m)).over(stream)

    kept: dict[Workers, float] = {}
    best = most
    for n in lanes:
        low, high = 1, best - n
        while low <= high:
            m = (low + high) // 2
            kept[Workers(n, m)] = latency = float(np.quantile(latencies(run(n, m)), PROMISE))
            low, high = (low, m - 1) if latency <= promise else (m + 1, high)
            if latency <= promise:
                best = n + m
    chosen = min(kept, key=lambda workers: (max(kept[workers], promise), workers.total))
    return run(chosen.plq, chosen.wlq)


def latencies(shown: Sequence[SimulationSample]) -> FloatArray:
    """Return the seconds from each window's closing to its answer, after the first third of a run."""
    begun = shown[-2].time / 3
    return np.concatenate([one.delays for one in shown if one.time > begun])


def capacity(shown: Sequence[SimulationSample]) -> dict[str, float]:
    """Return workers missed and wasted on average, changes per minute, and workers, after the first third.

    A stage that has n workers and a utilisation of rho needs n rho / 0.9 of them.
    """
    parts = _intervals(shown)
    had = np.array([[part[0].workers.plq, part[0].workers.wlq] for part in parts], float)
    needed = np.array([_needed(part) for part in parts])
    changes = float((np.diff(had, axis=0) != 0).any(axis=1).sum()) if len(had) > 1 else 0.0
    minutes = (parts[-1][-1].time - parts[0][0].time) / 60
    gap = np.nan_to_num(needed - had)
    return {
        "workers": float(had.sum(axis=1).mean()),
        "missed": float(np.maximum(gap, 0).sum(axis=1).mean()),
        "wasted": float(np.maximum(-gap, 0).sum(axis=1).mean()),
        "changes/min": changes / minutes,
        "latency 95 %": float(np.quantile(latencies(shown), PROMISE)),
        "extra %": 100 * max(0.0, shown[-1].time / shown[-2].time - 1),
    }


def _intervals(shown: Sequence[SimulationSample]) -> list[Sequence[SimulationSample]]:
    parts = [shown[at : at + EVERY] for at in range(0, len(shown) - EVERY, EVERY)]
    return parts[len(parts) // 3 :]


def _needed(part: Sequence[SimulationSample]) -> tuple[float, float]:
    workers = part[0].workers
    plq, wlq = (
        [getattr(one, name) for one in part if np.isfinite(getattr(one, name))] for name in ("rho_plq", "rho_wlq")
    )
    return (
        workers.plq * float(np.mean(plq)) / SETPOINT if plq else np.nan,
        workers.wlq * float(np.mean(wlq)) / SETPOINT if wlq else np.nan,
    )


def _against(other: str, rows: pd.DataFrame) -> Finding:
    means = rows.groupby("policy")[["missed", "wasted", "changes/min"]].mean()
    fuzzy, them = means.loc["fuzzy"], means.loc[other]
    ours = "; ".join(f"{name} {fuzzy[name]:.1f} against {them[name]:.1f}" for name in means.columns)
    return Finding(ours, bool(fuzzy["missed"] + fuzzy["wasted"] <= them["missed"] + them["wasted"]))


def _against_constant(rows: pd.DataFrame) -> Finding:
    fuzzy, constant = (only(rows, policy=name).reset_index(drop=True) for name in ("fuzzy", CONSTANT))
    told = "; ".join(
        f"{stream}: {ours:.1f} workers against {best:.0f}"
        for stream, ours, best in zip(fuzzy["stream"], fuzzy["workers"], constant["workers"], strict=True)
    )
    return Finding(told, bool((fuzzy["workers"] <= constant["workers"]).all()))


def _idle(rows: pd.DataFrame) -> Finding:
    kept, gone = (only(rows, policy=name).reset_index(drop=True) for name in ("fuzzy, idle ones stay", "fuzzy"))
    saved = 1 - gone["workers"].sum() / kept["workers"].sum()
    slower = (gone["latency 95 %"] / kept["latency 95 %"] - 1).max()
    return Finding(
        f"{saved:.0%} fewer workers; latency up by {max(slower, 0):.0%} at most", bool(saved > 0 and slower < 0.1)
    )


FIGURE = Figure(
    title="fuzzy, model, threshold, and the best constant numbers",
    regime=(
        "The paper's costs, N = 60, T_control 2.5 s, all with a setpoint of 0.9. Missed and wasted: workers that an interval "
        "lacked, or had too many of, on average, by rho; latency: seconds from a window's closing to its answer, of "
        "19 in 20. The constant numbers are the fewest of all that answer as soon as the fuzzy controller does, found by trying; "
        "they have all workers from the first second on."
    ),
    measure=measure,
    seeds=2,
    traced=measure,
    claims=(
        *(
            Claim(f"(ours) the fuzzy controller misses and wastes less together than {name}", partial(_against, name))
            for name in ("model", "threshold")
        ),
        Claim("(ours) it needs no more workers than the best constant numbers with the same latency", _against_constant),
        Claim("(ours) to take away workers without work saves workers and costs no latency", _idle),
    ),
    plots=(Plot("missed", "Workers that were missed", "stream", "missed", "policy", bars=True),
           Plot("workers", "Workers", "stream", "workers", "policy", bars=True),
           Plot("latency", "Seconds from a window's closing to its answer, 19 in 20", "stream", "latency 95 %", "policy", bars=True)),
)  # fmt: skip
