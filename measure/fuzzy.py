"""The membership functions and the decision surface of the default fuzzy controller.

    python -m measure.fuzzy [docs]

writes docs/fuzzy-membership.svg and docs/fuzzy-surface.svg.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from skypane.control.elasticity.fuzzy import FuzzyController
from skypane.control.elasticity.rules import SPEEDS, SPLITTINGS

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "skypane",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
MOST = np.array(60)


def membership(controller: FuzzyController) -> Figure:
    """Draw the terms of each input."""
    figure = Figure(figsize=(7.5, 2.4), layout="constrained")
    rho, splitting = figure.subplots(1, 2)
    x = np.linspace(0, 2, 401)
    for grades, term in zip(controller.rho_plq.grades(x).T, SPEEDS, strict=True):
        rho.plot(x, grades, label=term)
    sigma = np.linspace(1, 7, 401)
    for grades, name in zip(
        controller.splitting.grades(sigma, np.broadcast_to(MOST, sigma.shape)).T, SPLITTINGS, strict=True
    ):
        splitting.plot(sigma, grades, label=name)
    rho.set(xlabel="utilisation of a stage, rho", ylabel="membership", ylim=(0, 1.3))
    splitting.set(xlabel="splitting factor, sigma", ylim=(0, 1.3))
    for axes in (rho, splitting):
        axes.legend(loc="upper center", ncols=3, frameon=False)
    return figure


def surface(controller: FuzzyController) -> Figure:
    """Draw what both numbers of workers are multiplied by, over both utilisations, at two splitting factors."""
    figure = Figure(figsize=(7.5, 6), layout="constrained")
    grid = np.linspace(0, 2, 41)
    rho1, rho2 = np.meshgrid(grid, grid)
    for row, sigma in zip(figure.subplots(2, 2, sharex=True, sharey=True), (1.0, 5.0), strict=True):
        found = controller.infer(rho1.ravel(), np.full(rho1.size, sigma), rho2.ravel(), np.full(rho1.size, MOST))
        for axes, factor, stage in zip(row, (found.factor_plq, found.factor_wlq), ("PLQ", "WLQ"), strict=True):
            levels = np.linspace(0.5, 1.5, 9)
            inside = factor.clip(levels[0], levels[-1])  # rounding puts 1.5 slightly above itself
            drawn = axes.contourf(rho1, rho2, inside.reshape(rho1.shape), levels, cmap="RdBu_r")
            axes.set_title(f"factor of the {stage}, sigma {sigma:g}", fontsize=9)
    for axes in figure.axes[2:4]:
        axes.set_xlabel("utilisation of the PLQ")
    for axes in figure.axes[0:4:2]:
        axes.set_ylabel("utilisation of the WLQ")
    figure.colorbar(drawn, ax=figure.axes, label="workers are multiplied by")
    return figure


def main(docs: Path) -> None:
    """Write both pictures."""
    controller = FuzzyController()
    with mpl.rc_context(STYLE):
        for name, figure in (("membership", membership(controller)), ("surface", surface(controller))):
            figure.savefig(docs / f"fuzzy-{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
