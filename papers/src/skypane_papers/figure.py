"""A figure: how its rows are measured and drawn, and what the paper claims about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Finding(NamedTuple):
    """The result for a claim.

    ours    our values, in one line
    holds   whether the claim holds
    given   conditions with each of which it holds, where the paper does not state one; none: it holds with any
    """

    ours: str
    holds: bool
    given: tuple[str, ...] = ()


Judge = Callable[[pd.DataFrame], Finding]
TABLE = "the table above"


class Cause(NamedTuple):
    """Why a result differs from the paper's.

    why     the cause, in one line
    shown   what shows it: `TABLE`, the name of a figure, or a file of this repository
    """

    why: str
    shown: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper.

    says            the claim, in one line
    judge           rows -> finding
    cause           why the result differs, where that is known
    contradiction   where the paper contradicts itself
    """

    says: str
    judge: Judge
    cause: Cause | None = None
    contradiction: str = ""

    def verdict(self, finding: Finding) -> str:
        """Return one of five verdicts, with what belongs to it."""
        if finding.holds:
            return f"holds with {' or '.join(finding.given)}" if finding.given else "holds"
        if self.contradiction:
            return f"the paper contradicts itself: {self.contradiction}"
        return "open" if self.cause is None else f"differs: {self.cause.why} (shown by {self.cause.shown})"

    def verdict_of(self, findings: Sequence[Finding]) -> str:
        """Return the verdict on one finding per seed; where they differ, it counts the seeds for each condition."""
        held = [finding.given for finding in findings if finding.holds]
        lost = [finding for finding in findings if not finding.holds]
        if not held or (not lost and len(set(held)) == 1):
            return self.verdict(findings[0])
        parts = [f"{count} of {len(findings)} seeds{condition}" for count, condition in _counted(held)]
        return f"holds with {'; '.join(parts)}{f'; else {self.verdict(lost[0])}' if lost else ''}"


def _counted(held: Sequence[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Return how many seeds need no condition, then the conditions, those with most seeds first, and how many hold with each."""
    free = held.count(())
    counts = Counter(condition for given in held for condition in given)
    conditions: dict[int, list[str]] = {}
    for condition, count in counts.most_common():
        conditions.setdefault(free + count, []).append(condition)
    parts = [(count, f" and {' or '.join(alike)}") for count, alike in conditions.items()]
    return [(free, ""), *parts] if free else parts


def in_each(column: str, settings: Mapping[str, object], judge: Judge) -> Judge:
    """Return a judge of a claim whose setting the paper does not print: name -> value of `column` in the rows of a setting.

    The claim holds if it does with any setting; if not with all, the finding names those with which it does.
    """

    def judged(rows: pd.DataFrame) -> Finding:
        findings = {name: judge(rows[rows[column] == value]) for name, value in settings.items()}
        ours = "; ".join(f"{name}: {finding.ours}" for name, finding in findings.items())
        holding = [name for name, finding in findings.items() if finding.holds]
        return Finding(ours, bool(holding), () if len(holding) == len(findings) else tuple(holding))

    return judged


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
    measure   (quick) -> rows, or (quick, seed=) -> rows with several seeds; takes about a minute, or a second or two if
              `quick`, on a stream too short for the claims
    claims    the claims of the paper
    plots     the plots
    summary   rows -> the table that is printed; None: all rows
    traced    (quick, folder) -> rows, like `measure`, on the published rate traces if the paper has used them
    seeds     number of seeds, each measured and judged by itself; 1: nothing depends on chance, or the rows have seeds
    timing    whether rows hold CPU or wall time of this machine, so that nothing may run beside
    """

    title: str
    regime: str
    measure: Callable[..., pd.DataFrame]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]
    summary: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    traced: Callable[..., pd.DataFrame] | None = None
    seeds: int = 1
    timing: bool = False


@dataclass(frozen=True, eq=False)
class OfSeed:
    """The rows of one seed, and one finding per claim."""

    rows: pd.DataFrame
    findings: tuple[Finding, ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """A measured figure: its name, and the rows and findings of each seed."""

    name: str
    figure: Figure
    seeds: tuple[OfSeed, ...]
    quick: bool

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of the first seed, which are plotted."""
        return self.seeds[0].rows

    @property
    def every_row(self) -> pd.DataFrame:
        """The rows of all seeds, with a column `seed` if there are several."""
        if len(self.seeds) == 1:
            return self.rows
        parts = [one.rows.assign(seed=seed) for seed, one in enumerate(self.seeds)]
        return pd.concat(parts, ignore_index=True)

    @property
    def findings(self) -> tuple[tuple[Finding, ...], ...]:
        """For each claim its finding with each seed."""
        return tuple(zip(*(one.findings for one in self.seeds), strict=True))

    @property
    def tables(self) -> tuple[pd.DataFrame, ...]:
        """The table that is printed, one per seed."""
        summary = self.figure.summary
        return tuple(one.rows if summary is None else summary(one.rows) for one in self.seeds)


def measure(name: str, figure: Figure, *, quick: bool = False, traces: Path | None = None) -> Measured:
    """Measure a figure and check its claims, with each of its seeds; quick runs have one.

    traces   a folder of rate traces for the figures that can use them
    """
    of_seeds = [_of_seed(figure, seed, quick, traces) for seed in range(1 if quick else figure.seeds)]
    return Measured(name, figure, tuple(of_seeds), quick)


def _of_seed(figure: Figure, seed: int, quick: bool, traces: Path | None) -> OfSeed:
    chance = {"seed": seed} if figure.seeds > 1 else {}
    if figure.traced is None or traces is None:
        rows = figure.measure(quick, **chance)
    else:
        rows = figure.traced(quick, traces, **chance)
    return OfSeed(rows, tuple(claim.judge(rows) for claim in figure.claims))
