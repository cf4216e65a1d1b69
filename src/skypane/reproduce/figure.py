"""What a figure is: how its rows are measured, how they are drawn, and what the paper claims of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Finding(NamedTuple):
    """What was found in place of a claim: one line with figures, and whether the claim holds."""

    ours: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says.

    says      the claim, in one line
    judge     rows -> what they show of it
    because   why ours differs, where it does
    """

    says: str
    judge: Callable[[pd.DataFrame], Finding]
    because: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture.

    name     of the file, such as "b" of figure 8b
    title    above it
    x, y     columns of the rows
    by       one line (or group of bars) for each value of this column; None: one in all
    where    column -> value: only these rows
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
    """One figure of a paper, or several of one measurement.

    title     what it shows
    regime    what is run here, and with whose costs: one or two lines
    measure   quick -> rows; in about a minute, or, if `quick`, a second or two, on a stream too short for the claims
    claims    what the paper says of it
    plots     the pictures
    summary   rows -> the table that is printed; None: all rows
    traced    as `measure`, on the published rate traces in a folder, where the paper has run on them
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
    """A figure that was measured: its name, its rows (one column for each name), and a finding for each claim."""

    name: str
    figure: Figure
    rows: pd.DataFrame
    findings: tuple[Finding, ...]
    quick: bool

    @property
    def table(self) -> pd.DataFrame:
        """The rows that are printed."""
        return self.rows if self.figure.summary is None else self.figure.summary(self.rows)


def measure(name: str, figure: Figure, *, quick: bool = False, traces: Path | None = None) -> Measured:
    """Measure a figure and judge its claims; `traces`: a folder of rate traces, for the figures that can use them."""
    use = figure.traced if traces is not None else None
    rows = figure.measure(quick) if use is None or traces is None else use(quick, traces)
    return Measured(name, figure, rows, tuple(claim.judge(rows) for claim in figure.claims), quick)
