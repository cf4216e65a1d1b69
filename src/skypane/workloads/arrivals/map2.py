"""Bursty arrivals: a two-state Markovian arrival process, fitted to a mean rate and an index of dispersion.

The process is that of paper 1, section 4.3.2 and figure 4. A gap is exponential with mean m_n in the normal state and
m_b < m_n in the bursty one; after each arrival the state changes with probability p (normal to bursty) or q (bursty to
normal).

    shares of arrivals          f_n = q / (p + q)          f_b = p / (p + q)
    mean gap                    m = f_n m_n + f_b m_b
    variance between states     V = f_n f_b (m_n - m_b)^2
    variance of a gap           E[X^2] - m^2 = 2 (V + m^2) - m^2 = m^2 + 2 V     (2nd moment of an exponential: 2 m_s^2)
    SCV                         1 + 2 v                    with v = V / m^2
    lag-k autocorrelation       r_k = V g^k / (m^2 + 2 V)  with g = 1 - p - q, the chain's second eigenvalue

Summing the geometric series in I = SCV (1 + 2 sum r_k), paper 1's definition:

    I = 1 + 2 v + 2 v g / (1 - g) = 1 + 2 v / (p + q)

The fit is in closed form. The ratio m_n / m_b and the share of arrivals in bursts are given; they determine f_b, v and
both means. The requested I then determines p + q = 2 v / (I - 1), hence p = f_b (p + q) and q = f_n (p + q).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.argument_checks import positive
from skypane.workloads.arrivals.sent import CHUNK, whole_micros


@dataclass(frozen=True, slots=True)
class Map2:
    """Arrivals with a mean `rate` (tuples per second) and an index of dispersion above 1.

    Tuples arrive `ratio` times faster in bursts than outside; `burst_share` of all tuples arrive in bursts. A higher
    dispersion at the same ratio makes bursts longer, not faster.
    """

    rate: float
    dispersion: float
    ratio: float = 10.0
    burst_share: float = 0.5

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        positive("dispersion", self.dispersion)
        if not 1 < self.ratio < np.inf:
            raise ConfigError(f"need 1 < ratio < infinity, got ratio={self.ratio}")
        if not 0 < self.burst_share < 1:
            raise ConfigError(f"need 0 < burst_share < 1, got burst_share={self.burst_share}")
        least = self._least_dispersion()
        if self.dispersion < least:
            raise ConfigError(
                f"need dispersion >= {least:.4g} with ratio={self.ratio} and burst_share={self.burst_share}, got "
                f"dispersion={self.dispersion}; for less use a smaller ratio, for 1 use Poisson arrivals"
            )

    @property
    def mean_gaps(self) -> tuple[float, float]:
        """Mean seconds between arrivals in the normal state and in the bursty state."""
        normal_share = 1 - self.burst_share
        bursty = 1 / (self.rate * (normal_share * self.ratio + self.burst_share))
        return self.ratio * bursty, bursty

    @property
    def switching(self) -> tuple[float, float]:
        """Probabilities of entering a burst (p) and of leaving it (q) after an arrival."""
        both = 2 * self._between_states() / (self.dispersion - 1)
        return self.burst_share * both, (1 - self.burst_share) * both

    def _between_states(self) -> float:
        """Return v, the variance between the states divided by the squared mean gap."""
        normal, bursty = self.mean_gaps
        return self.burst_share * (1 - self.burst_share) * ((normal - bursty) * self.rate) ** 2

    def _least_dispersion(self) -> float:
        """Return the index of dispersion at which the larger of p and q reaches 1."""
        return 1 + 2 * self._between_states() * max(self.burst_share, 1 - self.burst_share)

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        now, bursty = 0.0, bool(rng.random() < self.burst_share)
        while True:
            gaps, bursty = self._gaps(bursty, rng)
            ends = now + np.cumsum(gaps)
            now = float(ends[-1])
            yield whole_micros(ends)

    def _gaps(self, bursty: bool, rng: np.random.Generator) -> tuple[FloatArray, bool]:
        """Return one chunk of gaps in seconds, the first of them in the given state, and the state after the chunk."""
        enter, leave = self.switching
        first, second = (leave, enter) if bursty else (enter, leave)
        # Stays in a state are geometric. A stay that the end of the chunk cuts short is drawn again in the next chunk,
        # since the rest of a geometric stay is geometric too.
        pairs = 8 + int(1.2 * CHUNK / (1 / first + 1 / second))
        stays = np.stack([rng.geometric(first, pairs), rng.geometric(second, pairs)], axis=1).ravel()
        ends = np.cumsum(np.minimum(stays, CHUNK + 1))  # a sum that cannot overflow
        used = int(np.searchsorted(ends, CHUNK))
        if used == len(ends):
            lengths, last = stays, len(stays)
        else:
            lengths, last = stays[: used + 1].copy(), used + int(ends[used] == CHUNK)
            lengths[-1] = CHUNK - (ends[used - 1] if used else 0)
        normal_gap, bursty_gap = self.mean_gaps
        means = np.where((np.arange(len(lengths)) % 2 == 0) == bursty, bursty_gap, normal_gap)
        gaps = np.repeat(means, lengths) * rng.standard_exponential(int(lengths.sum()))
        return gaps, bursty ^ (last % 2 == 1)
