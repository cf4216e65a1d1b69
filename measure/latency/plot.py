"""The figure of docs/progress.md: the latency of windows and the dropped rows of each policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from measure.latency.runs import Experiment, Result
from skypane.reporting.plot_style import PLAIN

_STYLE: Any = {**PLAIN, "legend.frameon": False}
_COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44")
_PLAIN = "#8a8f98"
_POINTS = 600


def write(path: Path, experiment: Experiment, contestants: Sequence[Result]) -> None:
    """Write the figure of one experiment as SVG; on a light ground, so that it is read on any page."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _latencies(left, experiment, contestants)
        _drops(right, [result for result in contestants if result.budget is not None])
        figure.suptitle(experiment.title)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _latencies(axes: Axes, experiment: Experiment, contestants: Sequence[Result]) -> None:
    unit, scale = experiment.unit
    means = [result.mean_latency / scale for result in contestants]
    coloured = iter(_COLOURS)
    colours = [_PLAIN if result.budget is None else next(coloured) for result in contestants]
    at = np.arange(len(contestants))
    bars = axes.barh(at, means, color=colours)
    axes.bar_label(bars, [f"{mean:.1f}" for mean in means], padding=3)
    axes.set_yticks(at, [result.name.strip("`") for result in contestants])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"mean window latency, {unit}")


def _drops(axes: Axes, contestants: Sequence[Result]) -> None:
    for result, colour in zip(contestants, _COLOURS, strict=True):
        ratio, seen = result.trace.drop_ratio(), result.trace.seen
        shown = np.unique(np.searchsorted(seen, np.geomspace(max(int(seen[0]), 100), int(seen[-1]), _POINTS)))
        axes.plot(seen[shown], ratio[shown] * 100, color=colour, label=result.name.strip("`"))
        axes.axhline((result.budget or 0.0) * 100, color=colour, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rows so far")
    axes.set_ylabel("dropped so far, % (dashed: budget)")
    axes.legend(loc="center right")
