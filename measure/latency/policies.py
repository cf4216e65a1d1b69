"""Window latency against dropped rows by policy (paper 1, figure 17, on our own streams).

    python -m measure.latency.policies [docs]

replays the flights and a synthetic heavy-tailed stream, and writes tables and a figure into docs/progress.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from measure.latency import plot as latency_plot
from measure.latency.runs import Experiment, Result, results, settings
from measure.tables import replace_between


def table(experiment: Experiment, contestants: Sequence[Result]) -> str:
    """Return the contestants as a Markdown table under its title."""
    unit = experiment.unit[0]
    head = (
        f"| policy | mean latency, {unit} | p95, {unit} | past the end, mean, {unit} | K-slack's mean is | budget "
        f"| dropped | after warm-up | worst after warm-up | windows |"
    )
    rule = "|---|" + "---:|" * 9
    return "\n".join(
        [
            f"**{experiment.title}**",
            "",
            head,
            rule,
            *(_row(experiment, result, contestants[0]) for result in contestants),
        ]
    )


def _row(experiment: Experiment, result: Result, reference: Result) -> str:
    scale = experiment.unit[1]
    times, trace = result.times, result.trace
    cells = [
        result.name,
        f"{result.mean_latency / scale:.2f}",
        f"{np.quantile(times.latency, 0.95) / scale:.2f}",
        f"{times.past_end.mean() / scale:.2f}",
        f"{reference.mean_latency / result.mean_latency:.1f}x",
        "-" if result.budget is None else f"{result.budget:.0%}",
        f"{trace.drop_ratio()[-1]:.3%}",
        f"{trace.drop_ratio_after(experiment.warm_up):.3%}",
        f"{trace.worst_drop_ratio(experiment.warm_up):.3%}",
        f"{len(times.end):,}",
    ]
    return f"| {' | '.join(cells)} |"


def main(docs: Path) -> None:
    """Run all settings; write the tables into docs/progress.md and the figure beside it."""
    measured = [(experiment, results(experiment)) for experiment in settings()]
    text = "\n\n".join(table(experiment, contestants) for experiment, contestants in measured)
    sys.stdout.write(f"{text}\n")
    replace_between(docs / "progress.md", "latency", text)
    experiment, contestants = measured[0]
    latency_plot.write(docs / "progress-latency.svg", experiment, contestants)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
