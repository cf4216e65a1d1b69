"""Other programs on the machine of an elastic query: real processes that only compute (paper 5, figure 18).

    python -m measure.elastic.hog [--docs docs] [--master "local[8]"] [--hogs 2] [--seconds 60]

One query runs at a constant rate, half of what one worker can do, and its rows are arithmetic. It alternates between
having the machine to itself and sharing it with `hogs` processes per core. The machine should have no other users.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import Final

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.elastic.runs import ELASTIC, LEAD, Profile, begun, run
from measure.elastic.service import Asked
from measure.tables import markdown_table, replace_between
from skypane.runtime.resources import cores

PHASES: Final = ("alone", "with hogs", "alone", "with hogs")
RATE: Final = 55.0
ROUNDS: Final = 40_000
"""Of hashing for each row: some ten milliseconds of a core."""


@dataclass(frozen=True)
class Ground(Asked):
    """The same skyline after so much arithmetic for each row; nobody is asked."""

    def lift(self, rows: pa.Table) -> pa.Table:
        for _ in range(rows.num_rows):
            hashlib.pbkdf2_hmac("sha256", b"row", b"salt", ROUNDS)
        return self.best.lift(rows)


@contextmanager
def hogs(count: int, profile: Profile) -> Iterator[None]:
    """Run so many processes that do nothing but compute, in the phases that have them."""
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        running.extend(subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count))

    def end() -> None:
        while running:
            hog = running.pop()
            hog.kill()
            hog.wait()

    turns = [
        Timer(profile.begin + at * profile.step - time.time(), end if phase == "alone" else start)
        for at, phase in enumerate(PHASES)
    ]
    for turn in turns:
        turn.start()
    try:
        yield
    finally:
        for turn in turns:
            turn.cancel()
        end()


def table(seen: Sequence[sp.BatchMetrics], seconds: float) -> list[list[str]]:
    """Return a line for each phase: medians over its batches, without the first quarter of its time."""
    lines = []
    for phase, (since, until) in zip(PHASES, pairwise(np.arange(len(PHASES) + 1) * seconds), strict=True):
        own = [batch for batch in seen if since + seconds / 4 <= batch.started_at - seen[0].started_at < until]
        lines.append([phase, *(_told(own) if own else ["no batch ended"] + ["-"] * 4)])
    return lines


def _told(own: Sequence[sp.BatchMetrics]) -> list[str]:
    workers = [batch.workers["plq"] for batch in own]
    return [
        f"{np.median([_cost(batch) for batch in own]):.1f}",
        f"{np.median([batch.rho or np.nan for batch in own]):.2f}",
        f"{np.mean(workers):.2f}",
        f"{workers[-1]}",
        f"{max(batch.rows for batch in own)}",
    ]


def _cost(batch: sp.BatchMetrics) -> float:
    """Return the milliseconds that a task was busy with a row."""
    return 1e3 * sum(batch.busy) / batch.rows if batch.rows else np.nan


def main() -> None:
    """Run the query, and tell what each phase was like."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--docs", type=Path)
    options.add_argument("--master", default="local[8]")
    options.add_argument("--hogs", type=int, default=2)
    options.add_argument("--seconds", type=float, default=60.0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="skypane-hog-") as temporary:
        spark = begun(given.master)
        profile = Profile(RATE, (1,) * len(PHASES), given.seconds, begin=time.time() + LEAD)
        with hogs(given.hogs * cores(), profile):
            seen = run(spark, profile, Ground(0), Path(temporary), elastic=ELASTIC, plq_workers=1)
        spark.stop()
    for batch in seen:
        why = batch.decision("workers")
        print(batch, batch.workers, f"rho {batch.rho}", "" if why is None else why.because)
    head = ["machine", "ms of a task for a row", "rho", "workers", "at the end", "rows of a batch, at most"]
    text = f"{given.hogs} for each of {cores()} cores, {given.seconds:g} s a phase.\n\n{markdown_table(head, table(seen, given.seconds))}"
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "control.md", "elastic hog", text)


if __name__ == "__main__":
    main()
