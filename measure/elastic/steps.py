"""A stream whose rate steps x1, x4, x1, x8, x1 on Spark: elastic workers compared with the fewest and the most workers.

    python -m measure.elastic.steps [--docs docs] [--master "local-cluster[8,1,512]"] [--step 50] [--runs elastic most]
        [--keep FOLDER]

The work of each row is to wait 20 ms for a service (service.py), so that eight workers are eight workers on any
machine. A worker processes 50 rows per second, and x1 is half of that. The runs follow each other in one session with
eight fixed executors; a worker is a task that may run at a time. Runs that are kept in a folder are not repeated, so
that they can be made one by one. The figures are the backlog at the end of a batch, the time from a window's end to its
answer, and the number of workers summed over time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import skypane as sp
from measure.elastic.runs import BOUNDS, ELASTIC, LEAD, MOST, SLIDE, Profile, begun, run
from measure.elastic.service import SECONDS, Asked, service
from measure.tables import markdown_table, replace_between
from skypane.control.elasticity.fuzzy import FuzzyController
from skypane.reporting.plot_style import PLAIN
from skypane.runtime.resources import cores
from skypane.types import FloatArray

FACTORS: Final = (1, 4, 1, 8, 1)
RATE: Final = 0.5 / SECONDS
"""Rows a second at x1."""
RUNS: dict[str, dict[str, Any]] = {
    "elastic": {"elastic": ELASTIC, "plq_workers": 1},
    "paper 5": {"elastic": sp.Fuzzy(**BOUNDS, every=2, catch_up=None, controller=FuzzyController()), "plq_workers": 1},
    "model": {"elastic": sp.Model(**BOUNDS), "plq_workers": 1},
    "fewest": {"elastic": None, "plq_workers": 1},
    "most": {"elastic": None, "plq_workers": MOST},
}
COLOURS: Final = dict(zip(RUNS, ("#1b6ca8", "#e09f3e", "#7b5ea7", "#d1495b", "#3a7d44"), strict=True))


@dataclass(frozen=True)
class Shown:
    """A run: by batch, when it ended (seconds of the stream), rows that waited then, workers, and seconds up to the next.

    latencies   seconds from each window's end to its answer
    """

    ended: FloatArray
    backlog: FloatArray
    workers: FloatArray
    lasted: FloatArray
    answered: FloatArray
    latencies: FloatArray

    def keep(self, path: Path) -> None:
        np.savez(path, **vars(self))

    @classmethod
    def kept(cls, path: Path) -> Shown:
        with np.load(path) as arrays:
            return cls(**arrays)

    @property
    def worker_seconds(self) -> float:
        return float(self.workers @ self.lasted)


def shown(seen: Sequence[sp.BatchMetrics], profile: Profile) -> Shown:
    """Return what the batches of a run come to; times are seconds since the profile's beginning."""
    began = np.array([batch.started_at for batch in seen])
    ended = began + np.array([batch.seconds["total"] for batch in seen])
    newest = (
        np.array([batch.newest or 0 for batch in seen]) / 1e6
    )  # rows arrive in order, so all rows before it are lifted
    at, lifted = np.append(ended, profile.end), np.append(newest, newest[-1])
    waits = [(end, end - closes) for batch, end in zip(seen, ended, strict=True) for closes in _closed(batch)]
    return Shown(
        ended=at - profile.begin,
        backlog=profile.rows(at) - profile.rows(lifted),
        workers=np.array([batch.workers["plq"] for batch in seen], float),
        lasted=np.diff(np.append(began, profile.end)),
        answered=np.array([end for end, _ in waits]) - profile.begin,
        latencies=np.array([wait for _, wait in waits]),
    )


def _closed(batch: sp.BatchMetrics) -> list[float]:
    """Return the ends of the windows that the batch answered, in seconds since the epoch."""
    if batch.latest_window is None:
        return []
    last = batch.latest_window["end"] / 1e6
    return [last - SLIDE * back for back in range(batch.windows)]


def table(runs: dict[str, Shown]) -> list[list[str]]:
    """Return a line for each run."""
    most = runs["most"].worker_seconds if "most" in runs else np.nan
    return [
        [
            name,
            f"{one.workers @ one.lasted / one.lasted.sum():.2f}",
            f"{one.worker_seconds:.0f} ({one.worker_seconds / most:.0%})",
            f"{one.backlog.max():.0f}",
            f"{one.backlog[-1]:.0f}",
            f"{np.median(one.latencies):.1f}",
            f"{np.percentile(one.latencies, 95):.1f}",
        ]
        for name, one in runs.items()
    ]


def draw(path: Path, runs: dict[str, Shown], step: float) -> None:
    """Draw backlog, latency of windows, and workers over time."""
    with mpl.rc_context({**PLAIN, "legend.frameon": False}):
        figure = Figure(figsize=(9.5, 8), layout="constrained")
        rate, backlog, latency, workers = figure.subplots(4, 1, sharex=True)
        rate.stairs([factor * RATE for factor in FACTORS], np.arange(len(FACTORS) + 1) * step, color="#8a8f98")
        _named(rate, "rows/s")
        for name, one in runs.items():
            colour = COLOURS[name]
            backlog.plot(one.ended, one.backlog, color=colour, label=name)
            latency.plot(one.answered, one.latencies, ".", markersize=3, color=colour)
            workers.step(one.ended[:-1], one.workers, where="post", color=colour)
        _named(backlog, "rows waiting")
        backlog.set_yscale("symlog", linthresh=100)
        backlog.legend(loc="upper left")
        _named(latency, "window's end\nto answer, s")
        _named(workers, "workers")
        workers.set_xlabel("seconds")
        workers.set_xlim(0, len(FACTORS) * step)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _named(axes: Axes, name: str) -> None:
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)


def measure(names: Sequence[str], master: str, step: float, kept: Path) -> None:
    """Make these runs, one after the other."""
    with tempfile.TemporaryDirectory(prefix="skypane-elastic-") as temporary, service() as port:
        spark = begun(master)
        for name in names:
            profile = Profile(RATE, FACTORS, step, begin=time.time() + LEAD)
            seen = run(spark, profile, Asked(port), Path(temporary) / name.replace(" ", "-"), **RUNS[name])
            shown(seen, profile).keep(kept / f"{name}.npz")
            for batch in seen:
                why = batch.decision("workers")
                print(batch, batch.workers, f"rho {batch.rho}", "" if why is None else why.because)
        spark.stop()


def main() -> None:
    """Make the runs, and tell what they come to."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--docs", type=Path)
    options.add_argument("--master", default=f"local-cluster[{MOST},1,512]")
    options.add_argument("--step", type=float, default=50.0)
    options.add_argument("--runs", nargs="*", choices=RUNS, default=list(RUNS))
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="skypane-elastic-") as temporary:
        kept = given.keep or Path(temporary)
        todo = [name for name in given.runs if not (kept / f"{name}.npz").exists()]
        if todo:
            measure(todo, given.master, given.step, kept)
        runs = {name: Shown.kept(kept / f"{name}.npz") for name in given.runs}
    head = [
        "workers",
        "on average",
        "worker-seconds",
        "rows waiting, at most",
        "at the end",
        "latency, median (s)",
        "95 %",
    ]
    told = f"{given.master} on {cores()} cores, steps of {given.step:g} s."
    text = f"{told}\n\n{markdown_table(head, table(runs))}"
    print(text)
    if given.docs is not None:
        draw(given.docs / "elastic-steps.svg", runs, given.step)
        replace_between(
            given.docs / "control.md", "elastic steps", f"{text}\n\n![steps of the rate](elastic-steps.svg)"
        )


if __name__ == "__main__":
    main()
