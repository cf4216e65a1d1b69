"""Values: shapes of points in the unit cube, and how they become numbers, dates or truth values of a type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator

_BLOCK: Final = 512
"""Points of a front that the kernels look at together."""


def _independent(rng: Rng, n: int, d: int) -> Floats:
    return rng.random((n, d))


def _correlated(rng: Rng, n: int, d: int) -> Floats:
    return rng.random((n, 1)) * 0.9 + rng.random((n, d)) * 0.1


def _anticorrelated(rng: Rng, n: int, d: int) -> Floats:
    points = rng.exponential(size=(n, d))
    shares: Floats = points / points.sum(axis=1, keepdims=True)
    return shares * 0.9 + rng.random((n, d)) * 0.1


def _clustered(rng: Rng, n: int, d: int) -> Floats:
    centres = rng.random((rng.integers(1, 6), d))
    return centres[rng.integers(0, len(centres), n)] * 0.9 + rng.random((n, d)) * 0.1


def _drifting(rng: Rng, n: int, d: int) -> Floats:
    """Each column goes its own way with time, or all go one: as far in 500 to 10,000 rows as its values are apart."""
    slopes = rng.choice([-1.0, 0.0, 1.0], d) if rng.random() < 0.5 else np.full(d, rng.choice([-1.0, -1.0, 1.0]))
    gone = np.arange(n)[:, None] * slopes / float(rng.choice([500, 1_000, 2_000, 10_000]))
    return _into_unit(rng.random((n, d)) + gone)


def improving(rng: Rng, n: int, d: int) -> Floats:
    """Each column falls with time, slowly: rows of one block are below all of an older one in some column, not in all.

    At times the last of every 512, which is the last of a block if all come at once, is good in all columns, and the best of its
    block in one.
    """
    gone = np.arange(n)[:, None] / float(rng.choice([300, 600, 1_000, 2_000, 4_000]))
    found = rng.random((n, d))
    if rng.random() < 0.3:
        found[_BLOCK - 1 :: _BLOCK] = 0.1
        found[_BLOCK - 1 :: _BLOCK, rng.integers(d)] = -rng.random() / 2
    return _into_unit(found - gone)


def _into_unit(points: Floats) -> Floats:
    """Return points moved and scaled into the unit cube."""
    least, most = (float(points.min()), float(points.max())) if points.size else (0.0, 1.0)
    return (points - least) / max(most - least, 1e-9)


def _wandering(rng: Rng, n: int, d: int) -> Floats:
    return _into_unit(np.cumsum(rng.normal(size=(n, d)), axis=0))


def _waves(rng: Rng, n: int, d: int) -> Floats:
    return 0.5 + 0.4 * np.sin(np.linspace(0, rng.uniform(3, 40), n)[:, None] + np.arange(d)) + rng.random((n, d)) * 0.1


def _equal(rng: Rng, n: int, d: int) -> Floats:
    return np.full((n, d), rng.random())


SHAPES: Final[tuple[Callable[[Rng, int, int], Floats], ...]] = (
    _independent,
    _independent,
    _anticorrelated,
    _anticorrelated,
    _correlated,
    _clustered,
    _drifting,
    _drifting,
    _wandering,
    _waves,
    _equal,
)

_RARE: Final = np.array([np.inf, -np.inf, -0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308, 1.0, -1.0])


def points(rng: Rng, n: int, d: int) -> Floats:
    """Return points (n, d), most of them in the unit cube, in order of time; some of few values, some columns constant."""
    found = SHAPES[rng.integers(len(SHAPES))](rng, n, d)
    if rng.random() < 0.45:
        found = np.floor(found * (grid := int(rng.choice([1, 2, 3, 5, 10, 100])))) / grid
    for j in range(d):
        if rng.random() < 0.06:
            found[:, j] = 0.5
    return found


def _floats(rng: Rng, u: Floats) -> Floats:
    style = rng.integers(8)
    if style == 0:
        return (u - 0.5) * 2e300
    if style == 1:
        return (u - 0.5) * 1e-310
    if style == 2:
        return np.where(rng.random(len(u)) < 0.3, rng.choice(_RARE, len(u)), u)
    if style == 3:
        return np.where(u < 0.5, -0.0, 0.0) if rng.random() < 0.3 else 1.0 + u * 1e-14
    if style == 4:
        return _of_sizes(rng, u)
    plain: Floats = u * rng.choice([1.0, 1.0, 100.0]) - rng.choice([0.0, 0.0, 0.5])
    return plain


def _of_sizes(rng: Rng, u: Floats) -> Floats:
    """Return numbers whose size changes with time, each time by 32 bits: by one digit of the kernels' exact sums."""
    share = float(rng.choice([0.05, 0.2]))
    sizes = np.clip(np.cumsum(rng.choice([-1, 0, 1], len(u), p=[share, 1 - 2 * share, share])), -2, 2)
    signs = rng.choice([-1.0, 1.0], len(u)) if rng.random() < 0.3 else 1.0
    sized: Floats = np.ldexp((u + 0.5) * signs, 32 * sizes)
    return sized


def _integers(bits: int, signed: bool) -> Callable[[Rng, Floats, pa.DataType], pa.Array]:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def draw(rng: Rng, u: Floats, kind: pa.DataType) -> pa.Array:
        span = int(rng.choice([2, 10, 100, 100, 2**16, 2**31, 2**50]))
        low = [0, 0, -5, least, most - span, 2**53 - 3, 2**60, -(2**53) - 3][rng.integers(8)]
        low = max(least, min(low, most - 1))
        span = max(1, min(span, most - low))
        drawn = [low + int(x * span) for x in np.clip(u, 0, 1).tolist()]
        return pa.array(drawn, kind)

    return draw


def _decimals(rng: Rng, u: Floats, kind: pa.DataType) -> pa.Array:
    unit = Decimal(1).scaleb(-kind.scale)
    span = int(rng.choice([3, 50, 10**6]))
    big = 10 ** (kind.precision - 1) if rng.random() < 0.3 else 0
    return pa.array([(big + int(x * span)) * unit for x in np.clip(u, -1, 1).tolist()], kind)


def _temporal(span: int, base: int) -> Callable[[Rng, Floats, pa.DataType], pa.Array]:
    def draw(rng: Rng, u: Floats, kind: pa.DataType) -> pa.Array:
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        low = int(rng.choice([0, base, -base]))
        return pa.array((low + np.floor(u * span)).astype(np.int64)).cast(width).cast(kind)

    return draw


def _floating(rng: Rng, u: Floats, kind: pa.DataType) -> pa.Array:
    drawn = _floats(rng, u)
    with np.errstate(over="ignore"):
        return pa.array(drawn.astype(np.float32) if kind == pa.float32() else drawn, kind)


Draw = Callable[[Rng, Floats, pa.DataType], pa.Array]

NUMBERS: Final[dict[str, tuple[pa.DataType, Draw]]] = {
    "double": (pa.float64(), _floating),
    "float": (pa.float32(), _floating),
    "long": (pa.int64(), _integers(64, signed=True)),
    "int": (pa.int32(), _integers(32, signed=True)),
    "short": (pa.int16(), _integers(16, signed=True)),
    "byte": (pa.int8(), _integers(8, signed=True)),
}
OTHERS: Final[dict[str, tuple[pa.DataType, Draw]]] = {
    "unsigned": (pa.uint64(), _integers(64, signed=False)),
    "decimal": (pa.decimal128(30, 10), _decimals),
    "money": (pa.decimal128(12, 2), _decimals),
    "date": (pa.date32(), _temporal(40, 16_000)),
    "timestamp": (pa.timestamp("us", "UTC"), _temporal(1_000_000, 10**15)),
    "local": (pa.timestamp("us"), _temporal(50, 10**15)),
    "boolean": (pa.bool_(), lambda _, u, kind: pa.array(u < 0.5, kind)),
}


def kinds(rng: Rng, d: int, n: int) -> list[str]:
    """Return a kind for each of d criteria: doubles mostly, and where rows are many only what is drawn in one go."""
    if rng.random() < 0.4:
        return ["double"] * d
    names = [*NUMBERS, *OTHERS] if n <= 2_000 else ["double", "float", "timestamp", "date"]
    return [str(rng.choice(names)) if rng.random() < 0.6 else "double" for _ in range(d)]


def column(rng: Rng, u: Floats, kind: str) -> pa.Array:
    """Return values of a kind, in the order of u, (n,)."""
    type_, draw = (NUMBERS | OTHERS)[kind]
    return draw(rng, u, type_)


def with_gaps(rng: Rng, values: pa.Array, share: float) -> pa.Array:
    """Return values of which a share is null, or NaN where there is NaN."""
    gone = rng.random(len(values)) < share
    if not gone.any():
        return values
    if pa.types.is_floating(values.type) and rng.random() < 0.5:
        numbers = values.to_numpy(zero_copy_only=False).copy()
        numbers[gone] = np.nan
        return pa.array(numbers, values.type)
    mask: Any = pa.array(gone)
    return pa.compute.if_else(mask, pa.scalar(None, values.type), values)
