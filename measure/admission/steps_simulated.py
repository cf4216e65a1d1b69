"""The same rate steps in virtual time, with the policy that sets the number of readers.

    python -m measure.admission.steps_simulated [--docs docs] [--step 24]

A batch takes 0.6 s, as on Spark with two cores, and 20 ms per row of a reader. It reads the rows that have arrived
since the last batch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

import skypane as sp
from measure.admission.steps import BOUND, FACTORS, MOST, RATE, TOLD
from measure.elastic.service import SECONDS
from measure.tables import markdown_table, replace_between
from skypane.control.admission.readers import Backlog, ReaderBatch

ITSELF: Final = 0.6
"""Seconds of a batch without rows."""
PARTS: Final = 20
"""Parts of a batch's rows whose waiting is looked at."""


def run(step: float, readers: int | sp.Readers) -> list[str]:
    """Return what a run comes to, as cells."""
    edges = np.arange(len(FACTORS) + 1) * step
    come = np.concatenate([[0.0], np.cumsum(np.array(FACTORS) * RATE * step)])
    policy = readers if isinstance(readers, sp.Readers) else None
    state = None if policy is None else policy.init()
    now, last, done, spent = ITSELF, 0.0, 0.0, 0.0
    waits: list[float] = []
    rows_of: list[float] = []
    while done < come[-1] - 1e-6:
        upto = float(np.interp(now, edges, come))
        rows = upto - done
        count = readers if isinstance(readers, int) else readers.max_readers
        if policy is not None and state is not None:
            state, decision = policy.decide(state, Backlog(rows / (now - last), rows))
            count = decision.value
        lasted = ITSELF + rows * SECONDS / count
        if policy is not None and state is not None:
            state = policy.observe(state, ReaderBatch(round(rows), lasted, count))
        came = np.interp(np.linspace(done, upto, PARTS + 1)[1:], come, edges)
        waits += list(now + lasted - came)
        rows_of += [rows / PARTS] * PARTS
        spent += count * lasted
        last, now, done = now, now + lasted, upto
    order, weights = np.argsort(waits), np.array(rows_of) / sum(rows_of)
    share = np.cumsum(weights[order])
    median, most = (waits[order[int(np.searchsorted(share, part))]] for part in (0.5, 0.95))
    within = float(weights[np.array(waits) <= BOUND].sum())
    return [f"{spent / now:.1f}", f"{spent:.0f}", f"{median:.1f}", f"{most:.1f}", f"{within:.0%}", f"{now:.0f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all three, and tell what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--step", type=float, default=60.0)
    given = parser.parse_args(arguments)
    policy = sp.Readers(max_readers=MOST, latency=f"{BOUND:g} seconds")
    runs: dict[str, int | sp.Readers] = {"planned": policy, "one": 1, "max_readers": MOST}
    head = ("", "readers on average", "reader-seconds", "a row's wait, median (s)", "95 %", "within 5 s",
            "all is read after (s)")  # fmt: skip
    text = markdown_table(head, [[TOLD[name], *run(given.step, readers)] for name, readers in runs.items()])
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "admission.md", "steps simulated", text)


if __name__ == "__main__":
    main()
