"""Figure 15: the balance of 16K keys on nodes under skew, with the K most frequent keys cut into sub-keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.keys import FrequencyAware, HashRing, SpaceSaving, load_balance
from skypane.types import IntArray
from skypane.workloads.cabs import CORNER, DEGREE, WIDTH, Cabs
from skypane.workloads.content.keys import zipf_shares
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.rows import at

KEYS: Final = 16_384
NODES: Final = 16
CUT: Final = (0, 5, 10, 50, 100, 200)
EXPONENTS: Final = (0.6, 0.8, 1.0, 1.2)
AREAS: Final = {"cabs by 100 m": 0.1, "cabs by 1 km": 1.0}
"""Kilometres of the side of an area, those of the paper's figure 2a."""
SAME: Final = ", same tuples"
"""Frequencies of the tuples that are spread, in place of those of the tuples before them."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream of keys and K."""
    tuples = 50_000 if quick else 1_000_000
    ring, sketch = HashRing(tuple(range(NODES))), SpaceSaving(2_048)
    found = []
    for name, (warm, keys) in _streams(tuples, EXPONENTS[::3] if quick else EXPONENTS, seed):
        frequencies = sketch.init()
        for batch in np.array_split(warm, 10):
            frequencies = sketch.observe(frequencies, batch)
        for most in CUT:
            plan = FrequencyAware(most).decide(frequencies, ring)
            balance = load_balance(plan.route(keys), NODES)
            found.append(
                {"keys": name, "K": most, "load balance %": 100 * balance, "sub-keys": sum(plan.parts.values())}
            )
    return pd.DataFrame(found)


def _streams(tuples: int, exponents: Sequence[float], seed: int) -> Iterator[tuple[str, tuple[IntArray, IntArray]]]:
    """Yield keys that are seen first, and keys that are spread, by name."""
    rng = np.random.default_rng(15 + seed)
    for exponent in exponents:
        names, shares = rng.permutation(KEYS), zipf_shares(KEYS, exponent)
        first, then = (names[rng.choice(KEYS, tuples, p=shares)] for _ in range(2))
        yield f"Zipf {exponent:g}", (first, then)
    for name, side in AREAS.items():
        areas = _areas(2 * tuples, side, seed)
        yield name, (areas[:tuples], areas[tuples:])
        yield name + SAME, (areas[tuples:], areas[tuples:])


def _areas(tuples: int, side: float, seed: int) -> IntArray:
    """Return the area of each report of a made city's cabs; `side` is the length of an area in km."""
    parts = []
    for batch in Cabs(rows=tuples, cabs=2_000, seed=seed).by_event():
        east, north = (
            np.floor((batch[name].to_numpy() - corner) * degree / side).astype(np.int64)
            for name, corner, degree in zip(("longitude", "latitude"), CORNER, DEGREE, strict=True)
        )
        parts.append(north * math.ceil(WIDTH / side) + east)
    return np.concatenate(parts)


def _skewed(rows: pd.DataFrame) -> Finding:
    low, high = (
        at(rows, "load balance %", keys=f"Zipf {exponent:g}", K=0) for exponent in (EXPONENTS[0], EXPONENTS[-1])
    )
    return Finding(f"{low:.0f} % and {high:.0f} % without cutting", low < high)


def _five(rows: pd.DataFrame) -> Finding:
    worst = rows[rows["K"] == 5].nlargest(1, "load balance %").iloc[0]
    ratio = float(worst["load balance %"])
    return Finding(f"at most {ratio:.0f} % at K = 5 ({worst['keys']})", ratio < 50)


def _cabs(rows: pd.DataFrame) -> Finding:
    told, holding = [], []
    for name in AREAS:
        ratios = [at(rows, "load balance %", keys=name, K=most) for most in (0, 5, 100)]
        told.append(f"{name} {' / '.join(f'{ratio:.0f}' for ratio in ratios)} %")
        holding += [name] if ratios[2] < ratios[0] / 2 else []
    given = (f"areas of {holding[0].removeprefix('cabs by ')}",) if len(holding) == 1 else ()
    return Finding(f"{', '.join(told)} at K = 0 / 5 / 100", bool(holding), given)


def _enough(rows: pd.DataFrame) -> Finding:
    hundred, two = (rows[rows["K"] == most]["load balance %"].max() for most in (100, 200))
    return Finding(f"at most {hundred:.1f} % at K = 100, {two:.1f} % at K = 200", two > 0.6 * hundred)


FIGURE = Figure(
    title="how evenly keys are spread under skew",
    regime=(
        f"{KEYS:,} keys by Zipf's law on {NODES} nodes with 256 places each on the ring; frequencies of a million tuples by a "
        "space-saving sketch of 2,048 keys, the ratio of the million after them. In place of the paper's trace of cabs, those of "
        "a made city (`skypane generate cabs`) by areas of 100 m and of 1 km, the two of the paper's figure 2a. The paper does not "
        "print its number of nodes and exponents."
    ),
    measure=measure,
    seeds=3,
    claims=(
        Claim("without cutting, the ratio grows with the skew", _skewed),
        Claim(
            "K = 5 brings it below 50 % in all cases",
            _five,
            Cause(
                "a city's busiest places change with the hour: with the frequencies of the same tuples it is below 50 %",
                TABLE,
            ),
        ),
        Claim("cutting balances the trace of cabs as it does Zipf's law", _cabs),
        Claim("beyond K = 100 to 200 more does not help", _enough),
    ),
    plots=(Plot("", "Figure 15: load-balancing ratio (%)", "K", "load balance %", "keys"),),
)
