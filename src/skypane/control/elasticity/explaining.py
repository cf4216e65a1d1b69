"""The fuzzy controller as a policy, and the line that says which rules led to its decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skypane.control.elasticity.fuzzy import FuzzyController, Inference
from skypane.control.elasticity.rules import SPEEDS, SPLITTINGS, Rule
from skypane.control.elasticity.situation import Policy, Proposal, Situation
from skypane.control.workers import Workers
from skypane.types import FloatArray

TOLD = 0.05
"""Grades and activations below it are left out of the line; the figures have all of them."""


@dataclass(frozen=True)
class FuzzyPolicy(Policy):
    """Two-level adaptation of paper 5: PLQ and WLQ workers by twelve rules."""

    controller: FuzzyController = field(default_factory=FuzzyController)
    name: ClassVar[str] = "fuzzy"

    def propose(self, situation: Situation, most: int) -> Proposal:
        now = situation.workers
        rho1, sigma, rho2 = (np.array(x) for x in (situation.rho_plq, situation.sigma, situation.rho_wlq))
        n, m = self.controller.decide(rho1, sigma, rho2, now.plq, now.wlq, most)
        after = Workers(int(n), int(m))
        found = self.controller.infer(rho1, sigma, rho2, np.array(most))
        return Proposal(after, told(situation, found, after), figures(found, self.controller.rules))


def told(situation: Situation, found: Inference, after: Workers) -> str:
    """Return one line: "PLQ slow 0.80 (rho 1.22), WLQ acceptable 1.00 (rho 0.90): rule 11 0.80 -> PLQ 4 -> 6, ..."."""
    now = situation.workers
    if not found.activation.any():
        return (
            f"rho not measured (PLQ {situation.rho_plq:.2f}, WLQ {situation.rho_wlq:.2f}): "
            f"PLQ stays at {after.plq}, WLQ at {after.wlq}"
        )
    inputs = [
        f"PLQ {_grades(found.plq[0], SPEEDS)} (rho {situation.rho_plq:.2f})",
        f"splitting {_grades(found.splitting[0], SPLITTINGS)} (sigma {situation.sigma:.2f})",
        f"WLQ {_grades(found.wlq[0], SPEEDS)} (rho {situation.rho_wlq:.2f})",
    ]
    fired = [(degree, number) for number, degree in enumerate(found.activation[0], 1) if degree >= TOLD]
    rules = ", ".join(f"rule {number} {degree:.2f}" for degree, number in sorted(fired, key=lambda one: -one[0]))
    return f"{', '.join(inputs)}: {rules} -> PLQ {now.plq} -> {after.plq}, WLQ {now.wlq} -> {after.wlq}"


def figures(found: Inference, rules: tuple[Rule, ...]) -> dict[str, float]:
    """Return every grade, activation and factor by name."""
    named = {"factor plq": float(found.factor_plq[0]), "factor wlq": float(found.factor_wlq[0])}
    for at, term in enumerate(SPEEDS):
        named[f"plq {term}"], named[f"wlq {term}"] = float(found.plq[0, at]), float(found.wlq[0, at])
    named |= {f"splitting {term}": float(found.splitting[0, at]) for at, term in enumerate(SPLITTINGS)}
    named |= {f"rule {number}": float(found.activation[0, number - 1]) for number in range(1, len(rules) + 1)}
    return {name: value for name, value in named.items() if not np.isnan(value)}


def _grades(grades: FloatArray, terms: tuple[str, ...]) -> str:
    return " ".join(f"{term} {grade:.2f}" for term, grade in zip(terms, grades, strict=True) if grade >= TOLD) or "none"
