"""A backlog of inputs of unequal size, read by max-min shares and in step by event time: rows dropped, and latency.

    python -m measure.yardstick.catching_up [docs]

writes a table into docs/progress-yardstick.md. The shares are those of the source (control/admission); the event times
ahead are sampled where the source samples them (runtime/spark/sources/many/event_times.py). 60,000 rows of 50 minutes, of
which 5 % are up to a minute late, wait at the start; windows are of a minute, every ten seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from measure.tables import markdown_table, replace_between
from skypane.control.admission.alignment import TimesAhead, aligned_shares
from skypane.control.admission.sharing import fair_shares
from skypane.progress import AqKSlack, KSlack, ProgressPolicy
from skypane.progress.policy_yardstick import BatchedStream, PolicyRun, best_fixed, window_ends
from skypane.runtime.spark.sources.many.event_times import CORRECTIONS
from skypane.runtime.spark.sources.many.event_times import ROWS as ROWS_OF_SAMPLE
from skypane.types import IntArray, Micros
from skypane.windows import Windows
from skypane.wording import percent, span

ROWS, SECOND = 60_000, 1_000_000
SIZES = (1, 2, 3, 5, 8, 13, 22, 36, 60, 100)
WINDOWS = Windows.of("1 minute", "10 seconds")
POLICIES: dict[str, ProgressPolicy] = {"`KSlack()`": KSlack(), "`AqKSlack(0.01)`": AqKSlack(0.01)}
CASES = {
    "two inputs, 1:2; 5,000": ((1, 2), 5_000),
    "two inputs, 1:2; 1,000": ((1, 2), 1_000),
    "ten inputs, 1:100; 1,000": (SIZES, 1_000),
}
HEAD = ("inputs, rows a batch", "shares", "policy", "dropped", "mean", "p99", "best fixed delay", "mean, x")


@dataclass(frozen=True)
class Backlog:
    """Event times of the waiting rows of each input, in the order in which they are read (microseconds)."""

    inputs: dict[str, IntArray]

    @classmethod
    def of(cls, sizes: Sequence[int], seed: int = 1) -> Backlog:
        """Return a backlog whose inputs have rows in proportion to `sizes`, over the same time."""
        rng = np.random.default_rng(seed)
        inputs = {}
        for number, size in enumerate(sizes):
            rows = ROWS * size // sum(sizes)
            sent = np.sort(rng.random(rows) * 3_000 * SECOND)
            late = np.where(rng.random(rows) < 0.05, rng.random(rows) * 60 * SECOND, 0)
            inputs[f"input {number}"] = (sent - late).astype(np.int64)
        return cls(inputs)

    def read(self, budget: int, *, in_step: bool) -> tuple[IntArray, list[Micros | None]]:
        """Return the event times in the order in which batches of `budget` rows read them.

        With each batch comes the time since which rows waited when it was planned; None: the source does not know it.
        """
        places, read, since, turn = dict.fromkeys(self.inputs, 0), list[IntArray](), list[Micros | None](), 0
        while wanted := {name: left for name, times in self.inputs.items() if (left := len(times) - places[name])}:
            waiting = {name: self.inputs[name][places[name] :] for name in wanted}
            shares, ahead = _in_step(waiting, budget, turn) if in_step else (fair_shares(wanted, budget, turn), {})
            since.append(min((times.times[0] for times in ahead.values()), default=None))
            for name, rows in shares.items():
                read.append(waiting[name][:rows])
                places[name] += rows
            turn += budget
        return np.concatenate(read), since


def _in_step(waiting: dict[str, IntArray], budget: int, turn: int) -> tuple[dict[str, int], dict[str, TimesAhead]]:
    """Return the shares of a batch by the times at four places, and where the shares end, and these times."""
    wanted = {name: len(times) for name, times in waiting.items()}
    places = {name: {0, budget // len(wanted), budget, rows - ROWS_OF_SAMPLE} for name, rows in wanted.items()}
    for _ in range(CORRECTIONS + 1):
        ahead = {name: _times(waiting[name], places[name]) for name in wanted}
        shares = aligned_shares(wanted, ahead, budget, turn)
        places = {name: rows | {shares[name]} for name, rows in places.items()}
    return shares, ahead


def _times(times: IntArray, places: set[int]) -> TimesAhead:
    medians = {}
    for place in places:
        start = max(0, min(place, len(times) - ROWS_OF_SAMPLE))
        sample = times[start : start + ROWS_OF_SAMPLE]
        medians[start + len(sample) // 2] = int(np.median(sample))
    return TimesAhead.of(medians).extended(len(times))


def scored(case: str) -> Iterator[list[str]]:
    """Yield the rows of the table for a case."""
    sizes, budget = CASES[case]
    backlog = Backlog.of(sizes)
    for in_step in (False, True):
        event, since = backlog.read(budget, in_step=in_step)
        cut, ends = BatchedStream.of(event, WINDOWS, budget), window_ends(event, WINDOWS)
        known = zip(cut.arrivals, since, strict=True)
        cut = replace(cut, arrivals=[replace(arrivals, waiting_since=time) for arrivals, time in known])
        for name, policy in POLICIES.items():
            run = PolicyRun.of(policy, cut)
            delay = best_fixed(cut, run, 0)
            fixed = PolicyRun.fixed(delay, run, cut)
            (latency, done), (other, _) = run.answered(ends), fixed.answered(ends)
            ours, theirs = latency[done], other[done]
            yield [
                case,
                "in step" if in_step else "max-min",
                name,
                percent(float(run.dropped[-1] / run.seen[-1])),
                span(round(ours.mean())),
                span(round(np.quantile(ours, 0.99))),
                span(delay),
                f"{ours.mean() / theirs.mean():.2f}",
            ]


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write the table."""
    page = markdown_table(HEAD, [row for case in CASES for row in scored(case)])
    sys.stdout.write(f"{page}\n")
    if arguments:
        replace_between(Path(arguments[0]) / "progress-yardstick.md", "catching up", page)


if __name__ == "__main__":
    main(sys.argv[1:])
