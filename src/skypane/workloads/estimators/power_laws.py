"""Exponents of power laws: the skew of keys, and heavy tails."""

from __future__ import annotations

from typing import Final

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.content.keys import zipf_shares

_STEEPEST: Final = 20.0


def zipf_exponent(keys: IntArray, among: int | None = None) -> float:
    """Return the maximum-likelihood exponent s >= 0 of shares 1 / rank^s, with ranks by the observed frequencies.

    `among`: the number of keys, by default of those that occur. If the keys of the tail occur only a few times, chance
    determines their ranks, and the estimate is slightly too high.
    """
    _, key_counts = np.unique(keys, return_counts=True)
    n = len(key_counts) if among is None else among
    if n < max(2, len(key_counts)):
        raise ConfigError(f"need two keys or more, and all that occur, got among={n} with {len(key_counts)} occurring")
    logs = np.log(np.arange(1, n + 1))
    # The likelihood is highest where the expected log-rank equals the observed one; the former falls with the exponent.
    observed = float(np.sort(key_counts)[::-1] @ logs[: len(key_counts)] / key_counts.sum())
    low, high = 0.0, _STEEPEST
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_log(n, middle, logs) > observed else (low, middle)
    return (low + high) / 2


def _mean_log(n: int, exponent: float, logs: FloatArray) -> float:
    return float(zipf_shares(n, exponent) @ logs)


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
