"""The result of `skypane simulate` for one number of workers."""

from __future__ import annotations

from typing import NamedTuple


class WorkerTrial(NamedTuple):
    """Means for a number of pane-level workers (`latency` in seconds), and `backlog` and `waiting` at the end."""

    workers: int
    rho: float
    sigma: float
    selected: float
    latency: float
    window_rho: float
    backlog: int
    waiting: int
