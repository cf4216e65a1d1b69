"""Executors held while a stream's rate steps x1, x4, x1, x8, x1, on a standalone cluster of one-core workers.

    python -m measure.elastic.executors [--docs docs] [--workers 8] [--step 50] [--ways follow most] [--keep FOLDER]

Master, workers and executors are processes of this machine. The work of each row is to wait 20 ms for a service, as in
steps.py, so that eight executors are eight on any machine; x1 is half of what one does. The ways run one after the other,
each with a driver of its own. Dynamic allocation has the shortest timeouts that let it remove anything between two batches
of a trigger of 3 s, and the tasks of the source's partitions, or as many as elastic= sets. Ways that are kept in a folder
are not repeated.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.java import FRUGAL
from tests.runtime.cluster import standalone

import skypane as sp
from measure.elastic.executor_times import executor_seconds, executor_times
from measure.elastic.runs import BOUNDS, ELASTIC, LEAD, MOST, Profile, run, started
from measure.elastic.service import Asked, service
from measure.elastic.steps import FACTORS, RATE, Shown, shown
from measure.tables import markdown_table, replace_between
from skypane.runtime.resources import cores
from skypane.runtime.spark.machine.executors import FOLLOWING
from skypane.types import FloatArray

IDLE: Final = "2s"
CONF: Final = {
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": FRUGAL,
    "spark.ui.enabled": "true",  # the status page tells when executors came and went
    "spark.ui.port": "0",
}
DYNAMIC: Final = {
    **CONF,
    **FOLLOWING,
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(MOST),
    "spark.dynamicAllocation.executorIdleTimeout": IDLE,
    "spark.dynamicAllocation.shuffleTracking.timeout": IDLE,
}
WAYS: Final[dict[str, tuple[dict[str, str], dict[str, Any]]]] = {
    "follow": (CONF, {"elastic": sp.Fuzzy(**BOUNDS, executors="follow"), "plq_workers": 1}),
    "elastic and dynamic allocation": (DYNAMIC, {"elastic": ELASTIC, "plq_workers": 1}),
    "dynamic allocation": (DYNAMIC, {"elastic": None}),
    "most": (CONF, {"elastic": None, "plq_workers": MOST}),
}
"""Settings of Spark, and options of the workers."""
HEAD: Final = (
    "executors", "on average", "in each step", "executor-seconds", "started", "rows waiting, at most", "at the end",
    "latency, median (s)", "95 %",
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """A run: its batches, and from when to when each executor was there, in seconds since the profile's beginning."""

    batches: Shown
    came: FloatArray
    gone: FloatArray
    step: float

    def keep(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        np.savez(folder / "executors.npz", came=self.came, gone=self.gone, step=self.step)
        self.batches.keep(folder / "batches.npz")

    @classmethod
    def kept(cls, folder: Path) -> Way:
        with np.load(folder / "executors.npz") as arrays:
            return cls(Shown.kept(folder / "batches.npz"), arrays["came"], arrays["gone"], float(arrays["step"]))

    def held(self, begin: float, end: float) -> float:
        return executor_seconds(zip(self.came.tolist(), self.gone.tolist(), strict=True), begin, end)

    @property
    def end(self) -> float:
        return self.step * len(FACTORS)

    def cells(self) -> list[str]:
        steps = pairwise(np.arange(len(FACTORS) + 1) * self.step)
        return [
            f"{self.held(0.0, self.end) / self.end:.2f}",
            ", ".join(f"{self.held(begin, end) / self.step:.1f}" for begin, end in steps),
            f"{self.held(0.0, self.end):.0f}",
            str(int((self.came > 0).sum())),
            f"{self.batches.backlog.max():.0f}",
            f"{self.batches.backlog[-1]:.0f}",
            f"{np.median(self.batches.latencies):.1f}",
            f"{np.percentile(self.batches.latencies, 95):.1f}",
        ]


def measured(name: str, master: str, step: float, port: int) -> Way:
    """Run one way on a cluster."""
    conf, options = WAYS[name]
    with tempfile.TemporaryDirectory(prefix="skypane-executors-") as scratch:
        spark = started(master, conf)
        profile = Profile(RATE, FACTORS, step, begin=time.time() + LEAD)
        seen = run(spark, profile, Asked(port), Path(scratch), **options)
        times = np.array(executor_times(spark)) - profile.begin
        spark.stop()
    for batch in seen:
        why = batch.decision("executors")
        print(batch, batch.workers, "" if why is None else why.because)
    return Way(shown(seen, profile), times[:, 0], times[:, 1], step)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each way in a process of its own, and show their results."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--docs", type=Path)
    options.add_argument("--workers", type=int, default=MOST)
    options.add_argument("--step", type=float, default=50.0)
    options.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    options.add_argument("--keep", type=Path)
    options.add_argument(
        "--on", nargs=2, metavar=("MASTER", "PORT"), help="run one way on this cluster, with this service"
    )
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="skypane-executors-") as temporary:
        kept = given.keep or Path(temporary) / "kept"
        if given.on is not None:
            (name,) = given.ways
            measured(name, given.on[0], given.step, int(given.on[1])).keep(kept / name)
            return
        with standalone(Path(temporary), cores=1, workers=given.workers) as master, service() as port:
            for name in given.ways:
                if not (kept / name).exists():
                    _run([*_command(name, given.step, kept), "--on", master, str(port)])
        ways = {name: Way.kept(kept / name) for name in given.ways}
    setting = f"{given.workers} workers of one core each, on {cores()} cores, steps of {given.step:g} s."
    text = f"{setting}\n\n{markdown_table(HEAD, [[name, *way.cells()] for name, way in ways.items()])}"
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "control.md", "executor steps", text)


def _command(name: str, step: float, kept: Path) -> list[str]:
    return [sys.executable, "-m", "measure.elastic.executors", "--ways", name, "--step", str(step), "--keep", str(kept)]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)  # noqa: S603 - this program itself


if __name__ == "__main__":
    main()
