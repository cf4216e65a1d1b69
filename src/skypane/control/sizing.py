"""Equation 1a of paper 3: the workers that keep up with a rate, each with a share of its time free.

(rate + backlog / latency) cost / n = 1 - H        the backlog must be processed within the latency
"""

from __future__ import annotations

import math

from skypane.types import ConfigError, Duration, micros


def workers_for(
    rate: float, cost: float, headroom: float, *, backlog: float = 0.0, latency: Duration = "1 second"
) -> int:
    """Return the fewest workers, at least one.

    rate       tuples per second
    cost       seconds of a worker per tuple
    headroom   H, the share of a worker that stays free
    backlog    tuples that wait, to be processed within `latency`
    """
    load = (rate + backlog / (micros(latency) / 1e6)) * cost
    return max(1, math.ceil(round(load / (1 - headroom), 9)))


def check_sizing(headroom: float, latency: Duration) -> None:
    """Raise ConfigError if no number of workers has this headroom, or no backlog can be processed within `latency`."""
    if not 0 <= headroom < 1:
        raise ConfigError(f"headroom is a share of a worker, need 0 <= headroom < 1, got {headroom}")
    if micros(latency, "latency") <= 0:
        raise ConfigError(f"latency must be longer than 0, got {latency!r}")
