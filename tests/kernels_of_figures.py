"""Kernels that `skypane warm` leaves aside, as no stream needs them: those of simulations, workloads and multiway aggregates.

`python -m tests.kernels_of_figures` has each compiled once, before several processes of tests would each compile it for itself.
"""

from __future__ import annotations

from skypane.workloads import workload
from skypane_papers.figure import measure
from skypane_papers.registry import figure

FIGURES = (
    "paper1-figure-9",
    "paper2-figure-7",
    "paper2-figures-8-12",
    "paper4-cost-model",
    "paper4-figure-13",
    "paper5-table-4",
)
POINTS = ("correlated", "anticorrelated")


def main() -> None:
    """Measure short figures, and draw a few rows."""
    for name in FIGURES:
        measure(name, figure(name), quick=True)
    for points in POINTS:
        workload("poisson", rate=1_000, rows=100, d=3, points=points).table()


if __name__ == "__main__":
    main()
