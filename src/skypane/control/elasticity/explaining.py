"""Reasons for the decisions of the fuzzy controller: the rules that led to each, in one line, and all grades by name."""

from __future__ import annotations

import math

import numpy as np

from skypane.control.elasticity.fuzzy import Inference
from skypane.control.elasticity.rules import SPEEDS, SPLITTINGS, FuzzyRule
from skypane.control.elasticity.situation import Situation
from skypane.control.parallelism import Workers
from skypane.types import FloatArray

LEAST_SHOWN = 0.05
"""Least grade and activation that the reason mentions; the figures contain all."""


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
