"""The fuzzy controller as a policy, with the rules that led to each decision as its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from skypane.control.elasticity.fuzzy import FuzzyController, Inference
from skypane.control.elasticity.rules import SPEEDS, SPLITTINGS, FuzzyRule
from skypane.control.elasticity.situation import Proposal, ScalingPolicy, Situation, fitted
from skypane.control.parallelism import Workers
from skypane.types import FloatArray

LEAST_SHOWN = 0.05
"""Least grade and activation that the reason mentions; the figures contain all."""


@dataclass(frozen=True)
class FuzzyPolicy(ScalingPolicy):
    """Two-level adaptation of paper 5: PLQ and WLQ workers by twelve rules."""

    controller: FuzzyController = field(default_factory=FuzzyController)
    name: ClassVar[str] = "fuzzy"

    def propose(self, situation: Situation, most: int) -> Proposal:
        controller = self.controller
        after, by_rules = (
            self._after(one, situation, most) for one in (controller, replace(controller, setpoint=None))
        )
        found = controller.infer(*self._inputs(situation), np.array(most))
        setpoint = controller.setpoint if after != by_rules else None
        return Proposal(after, explanation(situation, found, after, setpoint), figures(found, controller.rules))

    def _after(self, controller: FuzzyController, situation: Situation, most: int) -> Workers:
        now = situation.workers
        n, m = controller.decide(*self._inputs(situation), now.plq, now.wlq, most)
        return fitted(int(n), now.wlq if math.isnan(situation.rho_wlq) else int(m), most)

    def _inputs(self, situation: Situation) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the controller's inputs; a WLQ that was not measured, as no window was due, counts as acceptable."""
        rho_wlq = situation.rho_wlq
        if math.isnan(rho_wlq) and not math.isnan(situation.rho_plq):
            rho_wlq = self.controller.rho_wlq.acceptable.left
        return np.array(situation.rho_plq), np.array(situation.sigma), np.array(rho_wlq)


def explanation(situation: Situation, found: Inference, after: Workers, setpoint: float | None = None) -> str:
    """Return the reason in one line.

    "PLQ slow 0.80 (rho 1.22), WLQ acceptable 1.00 (rho 0.90): rule 11 0.80 -> PLQ 4 -> 6, ..."
    """
    now = situation.workers
    if not found.activation.any():
        return (
            f"rho not measured (PLQ {situation.rho_plq:.2f}, WLQ {situation.rho_wlq:.2f}): "
            f"PLQ stays at {after.plq}, WLQ at {after.wlq}"
        )
    inputs = [
        f"PLQ {_grades(found.plq[0], SPEEDS)} (rho {situation.rho_plq:.2f})",
        f"splitting {_grades(found.splitting[0], SPLITTINGS)} (sigma {situation.sigma:.2f})",
        "WLQ not measured"
        if math.isnan(situation.rho_wlq)
        else f"WLQ {_grades(found.wlq[0], SPEEDS)} (rho {situation.rho_wlq:.2f})",
    ]
    fired = [(degree, number) for number, degree in enumerate(found.activation[0], 1) if degree >= LEAST_SHOWN]
    rules = ", ".join(f"rule {number} {degree:.2f}" for degree, number in sorted(fired, key=lambda one: -one[0]))
    if setpoint is not None:
        rules += f", by the setpoint {setpoint:.2f}"
    return f"{', '.join(inputs)}: {rules} -> PLQ {now.plq} -> {after.plq}, WLQ {now.wlq} -> {after.wlq}"


def figures(found: Inference, rules: tuple[FuzzyRule, ...]) -> dict[str, float]:
    """Return all grades, activations and factors by name."""
    named = {"factor plq": float(found.factor_plq[0]), "factor wlq": float(found.factor_wlq[0])}
    for at, term in enumerate(SPEEDS):
        named[f"plq {term}"], named[f"wlq {term}"] = float(found.plq[0, at]), float(found.wlq[0, at])
    named |= {f"splitting {term}": float(found.splitting[0, at]) for at, term in enumerate(SPLITTINGS)}
    named |= {f"rule {number}": float(found.activation[0, number - 1]) for number in range(1, len(rules) + 1)}
    return {name: value for name, value in named.items() if not np.isnan(value)}


def _grades(grades: FloatArray, terms: tuple[str, ...]) -> str:
    return (
        " ".join(f"{term} {grade:.2f}" for term, grade in zip(terms, grades, strict=True) if grade >= LEAST_SHOWN)
        or "none"
    )
