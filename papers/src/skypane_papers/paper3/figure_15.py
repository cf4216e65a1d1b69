"""Figure 15: the balance of 16K keys on nodes under skew, with the K most frequent keys cut into sub-keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.keys import FrequencyAware, HashRing, SpaceSaving, load_balance
from skypane.types import IntArray
from skypane.workloads.cabs import CORNER, DEGREE, WIDTH, Cabs
from skypane.workloads.content.keys import zipf_shares
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at

KEYS: Final = 16_384
NODES: Final = 16
CUT: Final = (0, 5, 10, 50, 100, 200)
EXPONENTS: Final = (0.6, 0.8, 1.0, 1.2)
AREA: Final = 0.125
"""Kilometres of an area's side: the made city has 12,288 of them."""


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each stream of keys and K."""
    tuples = 50_000 if quick else 1_000_000
    ring, sketch = HashRing(tuple(range(NODES))), SpaceSaving(2_048)
    found = []
    for name, (warm, keys) in _streams(tuples, EXPONENTS[::3] if quick else EXPONENTS):
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


def _streams(tuples: int, exponents: Sequence[float]) -> Iterator[tuple[str, tuple[IntArray, IntArray]]]:
    """Yield keys that are seen first, and keys that are spread, by name."""
    rng = np.random.default_rng(15)
    for exponent in exponents:
        names, shares = rng.permutation(KEYS), zipf_shares(KEYS, exponent)
        first, then = (names[rng.choice(KEYS, tuples, p=shares)] for _ in range(2))
        yield f"Zipf {exponent:g}", (first, then)
    areas = _areas(2 * tuples)
    yield "areas of cabs", (areas[:tuples], areas[tuples:])


def _areas(tuples: int) -> IntArray:
    """Return the area of each report of a made city's cabs."""
    parts = []
    for batch in Cabs(rows=tuples, cabs=2_000).by_event():
        east, north = (
            np.floor((batch[name].to_numpy() - corner) * degree / AREA).astype(np.int64)
            for name, corner, degree in zip(("longitude", "latitude"), CORNER, DEGREE, strict=True)
        )
        parts.append(north * round(WIDTH / AREA) + east)
    return np.concatenate(parts)


def _skewed(rows: pd.DataFrame) -> Finding:
    low, high = (
        at(rows, "load balance %", keys=f"Zipf {exponent:g}", K=0) for exponent in (EXPONENTS[0], EXPONENTS[-1])
    )
    return Finding(f"{low:.0f} % and {high:.0f} % without cutting", low < high)


def _five(rows: pd.DataFrame) -> Finding:
    worst = rows[rows["K"] == 5]["load balance %"].max()
    return Finding(f"at most {worst:.0f} % at K = 5", worst < 50)


def _enough(rows: pd.DataFrame) -> Finding:
    hundred, two = (rows[rows["K"] == most]["load balance %"].max() for most in (100, 200))
    return Finding(f"at most {hundred:.1f} % at K = 100, {two:.1f} % at K = 200", two > 0.6 * hundred)


FIGURE = Figure(
    title="how evenly keys are spread under skew",
    regime=(
        f"{KEYS:,} keys by Zipf's law on {NODES} nodes with 256 places each on the ring; frequencies of a million tuples by a "
        "space-saving sketch of 2,048 keys, the ratio of the million after them. In place of the paper's trace of cabs, those of "
        f"a made city by areas of {1000 * AREA:g} m (`skypane generate cabs`), which are less skewed. The paper does not print "
        "its number of nodes and exponents."
    ),
    measure=measure,
    claims=(
        Claim("without cutting, the ratio grows with the skew", _skewed),
        Claim("K = 5 brings it below 50 % in all cases", _five),
        Claim("beyond K = 100 to 200 more does not help", _enough),
    ),
    plots=(Plot("", "Figure 15: load-balancing ratio (%)", "K", "load balance %", "keys"),),
)
