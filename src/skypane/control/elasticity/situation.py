"""Interface of elasticity policies, and the measurements that they decide from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from skypane.control.forecast import RateAhead
from skypane.control.parallelism import Workers
from skypane.policy import Decision


@dataclass(frozen=True, slots=True)
class Situation:
    """Measurements of a control interval.

    workers            current numbers of workers
    rho_plq, rho_wlq   utilisation of the PLQ and of the WLQ, NaN if unknown
    sigma              splitting factor, NaN if no pane was closed
    rate               tuples per second forecast for the next interval; None before the first forecast
    backlog            tuples that wait
    cost_plq           seconds per tuple in the PLQ, None if unknown
    cost_wlq           seconds of the WLQ per tuple of the PLQ, None if unknown
    ahead              a rate that the sources state for a time to come; None: they state none, or the policy ignores it
    """

    workers: Workers
    rho_plq: float
    rho_wlq: float
    sigma: float
    rate: float | None = None
    backlog: int = 0
    cost_plq: float | None = None
    cost_wlq: float | None = None
    ahead: RateAhead | None = None


class ScalingPolicy(ABC):
    """A policy without state: a pure function from situations to numbers of workers; subclasses are frozen."""

    name: ClassVar[str]
    #: whether it adds workers for a rate that is only stated (Situation.ahead)
    looks_ahead: ClassVar[bool] = False

    @property
    def promised(self) -> float | None:
        """The bound on the latency of an answer that it is to keep, in seconds; None: it has none."""
        return None

    @abstractmethod
    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        """Return the proposed workers: at least one in each stage, at most `max_workers` >= 2 together."""


def fitted(plq: int, wlq: int, max_workers: int) -> Workers:
    """Return both stages, reduced in proportion to at most `max_workers` together, with at least one worker each."""
    plq, wlq = max(1, plq), max(1, wlq)
    if plq + wlq > max_workers:
        plq = min(max(1, max_workers * plq // (plq + wlq)), max_workers - 1)
        wlq = min(wlq, max_workers - plq)
    return Workers(plq, wlq)
