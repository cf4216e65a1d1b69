"""Fuzzy logic controller of the numbers of workers: zero-order Takagi-Sugeno (paper 5, section 4.2).

    grades of the inputs  ->  a rule's activation = the least grade of its conditions  ->  factor = mean of the rules'
    constants, weighted by activation  ->  workers = factor x workers, rounded, at least one, together at most N

Implementations of the twelve rules differ in choices that the paper leaves open; each choice is a field here. The
defaults follow the paper's text; AS_RUN follows the code that its authors published and used for their figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from skypane.control.elasticity.membership import Speeds, Splittings, Trapezoid
from skypane.control.elasticity.rules import CHANGES, RULES, SPEEDS, SPLITTINGS, Change, Factors, FuzzyRule
from skypane.types import BoolArray, ConfigError, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SmallCount:
    """A stage of `workers` workers does not change while low <= factor < high; otherwise it changes by at least one.

    With rounding alone, one worker would never become two by a factor of 1.25, and two would alternate with three.
    """

    workers: int
    low: float
    high: float


SMALL_COUNTS = (SmallCount(1, 0.0, 1.25), SmallCount(2, 0.56, 1.25), SmallCount(3, 0.79, 1.21))
"""A worker is added when it is needed, and removed only if that would not require it again: one worker becomes two at
rho 1.1, which is 0.55 for two workers, a factor of 0.5625; and so on. From four workers on, rounding leaves a band of
loads, a tenth of a worker wide, in which the number oscillates; a cooldown prevents it."""


class Inference(NamedTuple):
    """Inference for k situations: grades (k, 3), (k, 2), (k, 3); activation of each rule (k, rules); factors (k,)."""

    plq: FloatArray
    splitting: FloatArray
    wlq: FloatArray
    activation: FloatArray
    factor_plq: FloatArray
    factor_wlq: FloatArray


@dataclass(frozen=True, slots=True)
class FuzzyController:
    """The controller.

    rho_plq, splitting, rho_wlq   terms of the inputs
    factors, rules                terms of the outputs, and the rules
    rho_cap                       larger utilisation factors count as this value; None: no cap
    accumulation                  "sum": each rule counts; "maximum": the strongest of the rules with the same output
    rounding                      rounding of halves: "up", or to the "even" number
    small                         special cases for stages of few workers
    served_first                  the stage that is rounded first if N is too small for both
    grants                        "all": a stage gets the workers that it is to have. "free": only those that neither stage has
                                  before the decision, or that the PLQ has just released; the PLQ first, as from a pool
    setpoint                      lower bound: a stage has at least the workers that its work keeps busy for this share
                                  of the time. So a stage that is far too slow gets its workers at once, and no worker
                                  is removed that the others would need. None: the factors only, as in the paper
    """

    rho_plq: Speeds = field(default_factory=Speeds)
    splitting: Splittings = field(default_factory=Splittings)
    rho_wlq: Speeds = field(default_factory=Speeds)
    factors: Factors = field(default_factory=Factors)
    rules: tuple[FuzzyRule, ...] = RULES
    rho_cap: float | None = None
    accumulation: Literal["sum", "maximum"] = "sum"
    rounding: Literal["up", "even"] = "up"
    small: tuple[SmallCount, ...] = SMALL_COUNTS
    served_first: Literal["plq", "wlq"] = "wlq"
    grants: Literal["all", "free"] = "all"
    setpoint: float | None = None

    def __post_init__(self) -> None:
        if self.setpoint is not None and not 0 < self.setpoint <= 1:
            raise ConfigError(f"setpoint is a share of a worker's time, need 0 < setpoint <= 1, got {self.setpoint}")

    def decide(self, rho1: Any, sigma: Any, rho2: Any, n: Any, m: Any, N: Any) -> tuple[IntArray, IntArray]:
        """Return the workers of both stages after each of k situations; the arrays have the shape of the inputs.

        rho1, rho2   utilisation factors of PLQ and WLQ; if one is NaN or negative, nothing changes
        sigma        splitting factor; NaN (no pane was closed) counts as 1
        n, m         workers of PLQ and WLQ
        N            largest number of workers of both stages together
        """
        rho1, sigma, rho2 = (np.asarray(values, np.float64) for values in (rho1, sigma, rho2))
        n, m, most = (np.asarray(values, np.int64) for values in (n, m, N))
        if (n < 1).any() or (m < 1).any():
            raise ConfigError("n and m must be at least 1: each stage has at least one worker")
        if (most < 2).any():
            raise ConfigError(f"N must be at least 2, one worker for each stage, got {int(most.min())}")
        found, measured = self.infer(rho1, sigma, rho2, most), _measured(rho1, rho2)
        shape = np.broadcast_shapes(*(values.shape for values in (rho1, sigma, rho2, n, m, most)))
        wanted_n, wanted_m = (
            np.maximum(self._scaled(workers, factor), self._needed(workers, rho, measured))
            for workers, factor, rho in ((n, found.factor_plq, rho1), (m, found.factor_wlq, rho2))
        )
        after = self._fitted(wanted_n, wanted_m, most)
        if self.grants == "free":
            after = _granted((n, m), after, most)
        return after[0].reshape(shape), after[1].reshape(shape)

    def infer(self, rho1: FloatArray, sigma: FloatArray, rho2: FloatArray, most: IntArray) -> Inference:
        """Return grades, activations and factors; situations without measurements activate no rule."""
        rho1, sigma, rho2, most = np.broadcast_arrays(*(np.atleast_1d(a) for a in (rho1, sigma, rho2, most)))
        plq, wlq = self.rho_plq.grades(self._capped(rho1)), self.rho_wlq.grades(self._capped(rho2))
        splitting = self.splitting.grades(np.where(np.isnan(sigma), 1.0, sigma), most)
        every = np.ones(rho1.shape)
        activation = np.stack(
            [
                np.minimum.reduce(
                    [
                        plq[..., SPEEDS.index(rule.plq)],
                        every if rule.splitting is None else splitting[..., SPLITTINGS.index(rule.splitting)],
                        wlq[..., SPEEDS.index(rule.wlq)],
                    ]
                )
                for rule in self.rules
            ],
            axis=-1,
        )
        activation = np.where(np.isnan(activation), 0.0, activation)
        activation[~_measured(rho1, rho2)] = 0.0
        factors = (self._factor(activation, [getattr(rule, change) for rule in self.rules]) for change in _CHANGED)
        return Inference(plq, splitting, wlq, activation, *factors)

    def _capped(self, rho: FloatArray) -> FloatArray:
        return rho if self.rho_cap is None else np.minimum(rho, self.rho_cap)

    def _factor(self, activation: FloatArray, changes: list[Change]) -> FloatArray:
        """Return the weighted mean of the rules' constants; "unchanged" if no rule is active."""
        if self.accumulation == "maximum":
            activation, changes = _strongest(activation, changes)
        # Rule by rule, because the order of additions in a dot product depends on the CPU. Rounded, because a mean that
        # equals a bound of SMALL_COUNTS may miss it by a rounding error.
        weight = total = np.zeros(activation.shape[:-1])
        for at, change in enumerate(changes):
            weight, total = weight + activation[..., at], total + activation[..., at] * getattr(self.factors, change)
        with np.errstate(invalid="ignore"):
            return np.where(weight > 0, np.round(total / weight, _DIGITS), self.factors.unchanged)

    def _scaled(self, workers: IntArray, factor: FloatArray) -> IntArray:
        workers, factor = np.broadcast_arrays(workers, factor)
        scaled = self._rounded(workers * factor)
        for few in self.small:
            here = workers == few.workers
            stays = (few.low <= factor) & (factor < few.high)
            least = np.maximum(scaled, few.workers + 1)
            most = np.minimum(scaled, few.workers - 1)
            scaled = np.where(here, np.where(stays, workers, np.where(factor >= few.high, least, most)), scaled)
        return np.maximum(scaled, 1)

    def _needed(self, workers: IntArray, rho: FloatArray, measured: BoolArray) -> IntArray:
        """Return the workers that a stage's work needs by the setpoint, rounded to the nearest if more than it has.

        Additional workers are rounded, so that one worker with a utilisation of 0.91 does not become two; of the
        current ones, none is removed that keeps the others below the setpoint.
        """
        if self.setpoint is None:
            return np.ones(1, np.int64)
        load = np.where(measured, workers * self._capped(rho) / self.setpoint, 0.0)
        load = np.minimum(load, _MANY)
        kept = np.minimum(np.ceil(np.round(load, _DIGITS)), workers)
        return np.asarray(np.where(load > workers, self._rounded(load), kept), np.int64)

    def _rounded(self, x: FloatArray) -> IntArray:
        # Weighted means of halves and quarters may miss a half by a rounding error.
        x = np.round(x, _DIGITS)
        return np.asarray(np.floor(x + 0.5) if self.rounding == "up" else np.round(x), np.int64)

    def _fitted(self, n: IntArray, m: IntArray, most: IntArray) -> tuple[IntArray, IntArray]:
        """Return both stages, reduced in proportion if together they exceed `most`."""
        over = n + m > most
        first, second = (m, n) if self.served_first == "wlq" else (n, m)
        kept = np.clip(self._rounded(first * most / (n + m)), 1, most - 1)
        first = np.where(over, kept, first)
        second = np.where(over, np.clip(self._rounded(second * most / (n + m)), 1, most - kept), second)
        return (second, first) if self.served_first == "wlq" else (first, second)


def _granted(
    now: tuple[IntArray, IntArray], wanted: tuple[IntArray, IntArray], most: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the workers of PLQ and WLQ if the PLQ changes first, and each stage gets at most the free workers."""
    n, m = now
    n_after = np.minimum(wanted[0], n + np.maximum(most - n - m, 0))
    m_after = np.minimum(wanted[1], m + np.maximum(most - n_after - m, 0))
    return n_after, m_after


def _measured(rho1: FloatArray, rho2: FloatArray) -> BoolArray:
    return np.asarray((rho1 >= 0) & (rho2 >= 0))  # False for NaN


_MANY = 1e9
"""Number of workers for an infinite utilisation."""
_DIGITS = 9
"""Decimals to which factors and workers are rounded."""
_CHANGED = ("change_plq", "change_wlq")


def _strongest(activation: FloatArray, changes: list[Change]) -> tuple[FloatArray, list[Change]]:
    """Return one column for each term, with its strongest rule."""
    terms = [term for term in CHANGES if term in changes]
    columns = [activation[..., [at for at, change in enumerate(changes) if change == term]] for term in terms]
    return np.stack([column.max(axis=-1) for column in columns], axis=-1), terms


PROMPT = FuzzyController(setpoint=0.9)
"""For micro-batches: they take seconds, so steps by a factor of 1.5 would take too long after a burst."""

_ENDING = replace(Speeds(), slow=Trapezoid(0.9, 1.3, 2.0, 2.0))

AS_RUN = FuzzyController(
    rho_plq=_ENDING,
    rho_wlq=_ENDING,
    splitting=Splittings(Trapezoid(1.0, 1.0, 2.0, 5.0), Trapezoid(2.0, 3.5, math.inf, math.inf), end=-1),
    rho_cap=2.0,
    accumulation="maximum",
    small=(SmallCount(1, 0.0, 1.25), SmallCount(2, 0.563, 1.25), SmallCount(3, 0.793, 1.17)),
)
"""Settings of the authors' published runs, which differ from the text of the paper."""
