"""What the three policies cost and miss on the same streams, beside the best constant numbers found afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from skypane.control.elasticity.explaining import FuzzyPolicy
from skypane.control.elasticity.fuzzy import AS_RUN
from skypane.control.elasticity.model import ModelPolicy
from skypane.control.elasticity.situation import Policy
from skypane.control.elasticity.threshold import ThresholdPolicy
from skypane.control.workers import Workers
from skypane.reproduce.elastic import GAME1, SETPOINT, SOURCES, Run, sampled
from skypane.reproduce.figure import Claim, Figure, Finding, Plot
from skypane.runtime.sim.simulation import Sampled

STREAMS = (SOURCES[0], SOURCES[1], SOURCES[5], GAME1)
POLICIES: dict[str, Policy] = {
    "fuzzy": FuzzyPolicy(),
    "fuzzy, as run": FuzzyPolicy(AS_RUN),
    "model": ModelPolicy(headroom=1 - SETPOINT),
    "threshold": ThresholdPolicy(target=SETPOINT),
}
EVERY = 10


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each stream and policy."""
    found = []
    for source in STREAMS[1:2] if quick else STREAMS:
        runs = {name: sampled(source, Run(policy=policy), quick, traces) for name, policy in POLICIES.items()}
        best = constant(runs["fuzzy"])
        runs[CONSTANT] = sampled(source, Run(policy=None, start=best), quick, traces)
        found += [{"stream": source.name, "policy": name} | capacity(shown) for name, shown in runs.items()]
    return pd.DataFrame(found)


CONSTANT = "constant"


def constant(shown: Sequence[Sampled]) -> Workers:
    """Return the numbers that nineteen of twenty control intervals of an elastic run would have been content with."""
    needs = np.array([_needed(part) for part in _intervals(shown)])
    plq, wlq = np.ceil(np.nanpercentile(needs, 95, axis=0)).astype(int)
    return Workers(max(1, int(plq)), max(1, int(wlq)))


def capacity(shown: Sequence[Sampled]) -> dict[str, float]:
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
        "extra %": 100 * max(0.0, shown[-1].time / shown[-2].time - 1),
    }


def _intervals(shown: Sequence[Sampled]) -> list[Sequence[Sampled]]:
    parts = [shown[at : at + EVERY] for at in range(0, len(shown) - EVERY, EVERY)]
    return parts[len(parts) // 3 :]


def _needed(part: Sequence[Sampled]) -> tuple[float, float]:
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


FIGURE = Figure(
    title="fuzzy, model, threshold, and the best constant numbers",
    regime=(
        "The paper's costs, N = 60, T_control 2.5 s, all with a setpoint of 0.9. Missed and wasted: workers that an interval "
        "lacked, or had too many of, on average; the constant numbers are the 95th percentile of what was needed."
    ),
    measure=measure,
    traced=measure,
    claims=tuple(
        Claim(f"(ours) the fuzzy controller misses and wastes less together than {name}", partial(_against, name))
        for name in ("model", "threshold", CONSTANT)
    ),
    plots=(Plot("missed", "Workers that were missed", "stream", "missed", "policy", bars=True),
           Plot("wasted", "Workers that were too many", "stream", "wasted", "policy", bars=True)),
)  # fmt: skip
