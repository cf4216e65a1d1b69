"""The exponent of a heavy tail."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


def tail_exponent(values: IntArray | FloatArray, share: float = 0.02) -> float:
    """Return a in P(X > x) ~ x^-a, from the largest `share` of the values (B. Hill, Annals of Statistics 3, 1975).

    A smaller share reduces the bias from the body of the distribution and increases the variance: the relative
    deviation is about 1 / sqrt(share * n).
    """
    if not 0 < share < 1:
        raise ConfigError(f"need 0 < share < 1, got share={share}")
    largest = np.sort(values)[::-1][: int(share * len(values)) + 1]
    if len(largest) < 2 or largest[-1] <= 0 or largest[0] == largest[-1]:
        raise ConfigError(
            f"need positive values that differ among the largest {share:.3g} of them, got {len(values)} values"
        )
    return float(1 / np.mean(np.log(largest[:-1] / largest[-1])))
