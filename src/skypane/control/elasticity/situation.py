"""What a policy of elasticity decides from, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from skypane.control.workers import Workers


@dataclass(frozen=True, slots=True)
class Situation:
    """What a control interval showed.

    workers      what there was
    rho_plq      utilisation of the PLQ, NaN if unknown; rho_wlq of the WLQ
    sigma        splitting factor, NaN if no pane was closed
    rate         tuples per second forecast for the next interval; None before there is a forecast
    backlog      tuples that wait
    cost_plq     seconds per tuple in the PLQ, None if unknown
    cost_wlq     seconds of the WLQ per tuple that came into the PLQ, None if unknown
    """

    workers: Workers
    rho_plq: float
    rho_wlq: float
    sigma: float
    rate: float | None = None
    backlog: int = 0
    cost_plq: float | None = None
    cost_wlq: float | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """The workers that a policy would have, and why."""

    workers: Workers
    because: str
    figures: Mapping[str, float] = field(default_factory=dict)


class Policy(ABC):
    """A pure rule from situations to workers; subclasses are frozen."""

    name: ClassVar[str]

    @abstractmethod
    def propose(self, situation: Situation, most: int) -> Proposal:
        """Return the workers to have, at least one in each stage, at most `most` >= 2 together."""


def fitted(plq: int, wlq: int, most: int) -> Workers:
    """Return both stages reduced in proportion where they are more than `most` together; one each at least."""
    plq, wlq = max(1, plq), max(1, wlq)
    if plq + wlq > most:
        plq = min(max(1, most * plq // (plq + wlq)), most - 1)
        wlq = min(wlq, most - plq)
    return Workers(plq, wlq)
