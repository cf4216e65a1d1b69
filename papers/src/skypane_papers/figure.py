"""A figure: how its rows are measured and drawn, and what the paper claims about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Finding(NamedTuple):
    """The result for a claim: one line with our values, and whether the claim holds."""

    ours: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper.

    says      the claim, in one line
    judge     rows -> finding
    because   why our result differs, if it does
    """

    says: str
    judge: Callable[[pd.DataFrame], Finding]
    because: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    name     suffix of the file name, such as "b" for figure 8b
    title    title of the plot
    x, y     columns of the rows
    by       column with one line (or bar in each group) per value; None: a single line
    where    column -> value: plot only these rows
    level    a horizontal line to compare with, such as a setpoint
    bars     bars instead of lines
    log      axes with a logarithmic scale: "", "x", "y" or "xy"
    """

    name: str
    title: str
    x: str
    y: str
    by: str | None = None
    where: Mapping[str, object] = field(default_factory=dict)
    level: float | None = None
    bars: bool = False
    log: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a paper, or several with the same measurement.

    title     title of the figure
    regime    what is run here, and with which costs, in one or two lines
    measure   quick -> rows; takes about a minute, or a second or two if `quick`, on a stream too short for the claims
    claims    the claims of the paper
    plots     the plots
    summary   rows -> the table that is printed; None: all rows
    traced    (quick, folder) -> rows, like `measure`, on the published rate traces if the paper has used them
    """

    title: str
    regime: str
    measure: Callable[[bool], pd.DataFrame]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]
    summary: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    traced: Callable[[bool, Path], pd.DataFrame] | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """A measured figure: its name, its rows, and one finding per claim."""

    name: str
    figure: Figure
    rows: pd.DataFrame
    findings: tuple[Finding, ...]
    quick: bool

    @property
    def table(self) -> pd.DataFrame:
        """The table that is printed."""
        return self.rows if self.figure.summary is None else self.figure.summary(self.rows)


def measure(name: str, figure: Figure, *, quick: bool = False, traces: Path | None = None) -> Measured:
    """Measure a figure and check its claims; `traces` is a folder of rate traces for the figures that can use them."""
    use = figure.traced if traces is not None else None
    rows = figure.measure(quick) if use is None or traces is None else use(quick, traces)
    return Measured(name, figure, rows, tuple(claim.judge(rows) for claim in figure.claims), quick)
