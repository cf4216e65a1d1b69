"""Figure 13: keys that change their node when nodes are added and removed, by basic hashing and on the ring."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.keys import FrequencyAware, HashRing, SpaceSaving, basic
from skypane.control.keys.partitioning import KeyPlan
from skypane.types import IntArray
from skypane.workloads.content.keys import zipf_shares
from skypane_papers.figure import Claim, Figure, Finding, Plot

KEYS: Final = 16_384
LOWEST, HIGHEST = 4, 32
EXPONENT: Final = 1.0
CUT: Final = 100


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each change of nodes and way: keys that moved, and what a merge node gets of a pane."""
    tuples, rng = (20_000 if quick else 200_000), np.random.default_rng(13 + seed)
    up = list(range(LOWEST, HIGHEST + 1, 7 if quick else 1))
    sizes = up + up[-2::-1]
    names, shares = rng.permutation(KEYS), zipf_shares(KEYS, EXPONENT)
    sketch = SpaceSaving(2_048)
    frequencies = sketch.observe(sketch.init(), names[rng.choice(KEYS, tuples, p=shares)])
    found = []
    for step, (before, after) in enumerate(pairwise(sizes), 1):
        keys = names[rng.choice(KEYS, tuples, p=shares)]
        plans = [_plan(nodes, frequencies) for nodes in (before, after)]
        rings = [plan.ring.of(np.arange(KEYS)) for plan in plans]
        moved = {
            "basic hashing": float((basic(np.arange(KEYS), before) != basic(np.arange(KEYS), after)).mean()),
            "frequency-aware": float((rings[0] != rings[1]).mean()),
        }
        # A pane during which the nodes change has tuples by both plans; each node with tuples of a key sends a partial.
        half = len(keys) // 2
        routed = {
            "basic hashing": np.concatenate([basic(keys[:half], before), basic(keys[half:], after)]),
            "frequency-aware": np.concatenate([plans[0].route(keys[:half]), plans[1].route(keys[half:])]),
        }
        for way, share in moved.items():
            partials = _pairs(keys, routed[way]) / len(np.unique(keys))
            found.append(
                {"change": step, "nodes": after, "way": way, "relocated %": 100 * share, "partials a key": partials}
            )
    return pd.DataFrame(found)


def _plan(nodes: int, frequencies: object) -> KeyPlan:
    return FrequencyAware(CUT).decide(frequencies, HashRing(tuple(range(nodes))))  # type: ignore[arg-type]


def _pairs(keys: IntArray, nodes: IntArray) -> int:
    return len(np.unique(keys * (2 * HIGHEST) + nodes))


def _relocated(rows: pd.DataFrame) -> Finding:
    means = rows.groupby("way")["relocated %"].mean()
    ours, theirs = means["frequency-aware"], means["basic hashing"]
    return Finding(f"{theirs:.0f} % by basic hashing, {ours:.1f} % on the ring", theirs > 80 and ours < theirs / 4)


def _merged(rows: pd.DataFrame) -> Finding:
    means = rows.groupby("way")["partials a key"].mean()
    ours, theirs = means["frequency-aware"], means["basic hashing"]
    return Finding(f"{theirs:.2f} partials a key by basic hashing, {ours:.2f} on the ring", ours < theirs)


FIGURE = Figure(
    title="keys that move when nodes come and go",
    regime=(
        f"{KEYS:,} keys by Zipf's law ({EXPONENT:g}); nodes go from {LOWEST} to {HIGHEST} and back, one at a time, as in the "
        f"lower part of figure 14; the {CUT} most frequent keys are cut. If the nodes change in the middle of a pane, each node "
        "with tuples of a key sends a partial of it, which a merge node has to merge."
    ),
    measure=measure,
    seeds=3,
    claims=(
        Claim("basic hashing moves almost all keys, the ring far fewer", _relocated),
        Claim("so merge nodes have less to do", _merged),
    ),
    plots=(
        Plot("a", "Figure 13a: keys relocated (%)", "change", "relocated %", "way"),
        Plot("b", "Figure 13b: partials to merge for a key", "change", "partials a key", "way"),
    ),
)
