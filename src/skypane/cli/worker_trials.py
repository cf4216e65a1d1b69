"""What `skypane simulate` finds for each number of workers."""

from __future__ import annotations

from typing import NamedTuple


class WorkerTrial(NamedTuple):
    """A number of pane-level workers, and what it comes to: means, and what waits at the end. `latency` in seconds."""

    workers: int
    rho: float
    sigma: float
    selected: float
    latency: float
    window_rho: float
    backlog: int
    waiting: int
