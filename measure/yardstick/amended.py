"""Latency against the share of windows that late rows amend: AqKSlack with a budget of windows, and with one of rows.

    python -m measure.yardstick.amended [docs]

writes a table into docs/progress-yardstick.md. All figures are for the windows that end after the first fifth of the
stream. The best fixed delay is the smallest that amends no more of them than the policy does, and needs the end of the
stream to be known.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measure.tables import markdown_table, replace_between
from measure.yardstick.streams import Stream, streams
from skypane.progress import AqKSlack, KSlack, ProgressPolicy
from skypane.progress.policy_yardstick import BatchedStream, PolicyRun, window_ends
from skypane.types import BoolArray, IntArray, Micros
from skypane.windows import Windows
from skypane.wording import percent, span

POLICIES: dict[str, ProgressPolicy] = {
    **{f"`max_amended={budget}`": AqKSlack(max_amended=budget) for budget in (0.01, 0.05, 0.2, 0.5)},
    "`max_drop=0.01`": AqKSlack(max_drop=0.01),
    "`KSlack()`": KSlack(),
}
BATCH = 200
_SECOND, _MINUTE = Windows.of("1 second", "500 ms"), Windows.of("1 minute")
WINDOWS = {
    "uniform": _SECOND,
    "exponential": _SECOND,
    "log-normal": _SECOND,
    "Pareto, tail 2.5": _SECOND,
    "Pareto, tail 1.2": _SECOND,
    "ten times as late from the middle on": _SECOND,
    "one source of 500 silent for ten minutes, then all at once": _SECOND,
    "flights": Windows.of("1 hour"),
    "an hour of delays ten times as long": _MINUTE,
    "fifty rows ten minutes late": _MINUTE,
    "one clock of 50 two hours behind": _MINUTE,
    "one source of 200 uploads at night": _MINUTE,
}
HEAD = (
    "stream",
    "window",
    "policy",
    "amended",
    "rows late",
    "mean",
    "p99",
    "best fixed delay",
    "mean, x",
    "p99, x",
)
_NEVER = -(1 << 62)


@dataclass(frozen=True)
class AmendedScore:
    """Scores of a policy.

    amended     share of the windows that late rows amend
    late        share of the rows whose pane was closed before they came
    mean, p99   latency of the first answers of windows (microseconds)
    """

    amended: float
    late: float
    mean: float
    p99: float


@dataclass(frozen=True)
class AmendedCell:
    """A policy on a stream, and the best fixed delay that amends no more windows."""

    tested: AmendedScore
    fixed: AmendedScore
    delay: Micros

    @property
    def ratios(self) -> tuple[float, float]:
        """Mean and p99 latency as multiples of those of the best fixed delay."""
        return self.tested.mean / max(self.fixed.mean, 1.0), self.tested.p99 / max(self.fixed.p99, 1.0)


@dataclass(frozen=True, eq=False)
class AmendedStream:
    """A stream in batches, and when rows came for its windows.

    ends      ends of the windows that have rows, ascending (microseconds)
    judged    which of them end after the first fifth of the stream
    window    for each window of each batch: its index in `ends`, and the batch
    step
    """

    cut: BatchedStream
    ends: IntArray
    judged: BoolArray
    window: IntArray
    step: IntArray

    @classmethod
    def of(cls, stream: Stream, windows: Windows, batch: int) -> AmendedStream:
        """Return a stream for windows of one kind, in batches of `batch` rows."""
        cut = BatchedStream.of(stream.event, windows, batch, stream.arrival, stream.source)
        ends = window_ends(stream.event, windows)
        pane = windows.panes_at(cut.pane_end - 1)
        last, step = pane // windows.panes_per_slide, cut.step
        first = -((windows.panes_per_window - 1 - pane) // windows.panes_per_slide)
        numbers = np.concatenate([np.minimum(first + one, last) for one in range(windows.overlap)])
        steps = np.tile(step, windows.overlap)
        pairs = np.unique(np.stack([steps, numbers]), axis=1)
        end = windows.offset + pairs[1] * windows.slide + windows.length
        newest = PolicyRun.of(KSlack(), cut).newest
        judged = (ends > newest[len(newest) // 5]) & (ends <= newest[-1])
        return cls(cut, ends, judged, np.searchsorted(ends, end), pairs[0])

    def amended(self, punctuation: IntArray) -> BoolArray:
        """Return which windows a row has come for after their end was passed; `punctuation`: after each batch."""
        before = np.concatenate([[_NEVER], punctuation[:-1]])[self.step]
        late: BoolArray = np.zeros(len(self.ends), np.bool_)
        late[self.window[self.ends[self.window] <= before]] = True
        return late

    def score(self, run: PolicyRun) -> AmendedScore:
        """Return the scores of a run."""
        latency, done = run.answered(self.ends)
        fifth = len(run.seen) // 5
        late = (run.dropped[-1] - run.dropped[fifth]) / (run.seen[-1] - run.seen[fifth])
        found = latency[self.judged & done]
        share = float(self.amended(run.punctuation)[self.judged].mean())
        return AmendedScore(share, float(late), float(found.mean()), float(np.quantile(found, 0.99)))

    def compared(self, policy: ProgressPolicy) -> AmendedCell:
        """Return the scores of a policy, and those of the best fixed delay."""
        run = PolicyRun.of(policy, self.cut)
        most = int(self.amended(run.punctuation)[self.judged].sum())
        delay = self.best_fixed(run, most)
        return AmendedCell(self.score(run), self.score(PolicyRun.fixed(delay, run, self.cut)), delay)

    def best_fixed(self, run: PolicyRun, most: int) -> Micros:
        """Return the smallest fixed delay that amends at most `most` of the judged windows."""
        before = np.concatenate([[_NEVER], run.newest[:-1]])[self.step]
        distance = np.full(len(self.ends), _NEVER)
        np.maximum.at(distance, self.window, before - self.ends[self.window])
        longest = np.sort(distance[self.judged])[::-1]
        return max(0, int(longest[most]) + 1) if most < len(longest) else 0


def chosen() -> Iterator[tuple[Stream, Windows]]:
    """Yield the streams of the table, each with its windows."""
    for stream in streams():
        if stream.name in WINDOWS:
            yield stream, WINDOWS[stream.name]


def table(cells: Sequence[tuple[Stream, Windows, Sequence[AmendedCell]]]) -> str:
    """Return the cells as a Markdown table, a row for each policy on each stream."""
    rows = [
        [stream.name, span(windows.length), name, *_figures(cell)]
        for stream, windows, found in cells
        for name, cell in zip(POLICIES, found, strict=True)
    ]
    return markdown_table(HEAD, rows)


def _figures(cell: AmendedCell) -> Iterator[str]:
    tested, (mean, p99) = cell.tested, cell.ratios
    yield percent(tested.amended)
    yield percent(tested.late)
    yield from (span(round(time)) for time in (tested.mean, tested.p99, cell.delay))
    yield from (f"{ratio:.2f}" for ratio in (mean, p99))


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write the table."""
    found = []
    for stream, windows in chosen():
        cut = AmendedStream.of(stream, windows, BATCH)
        found.append((stream, windows, [cut.compared(policy) for policy in POLICIES.values()]))
        sys.stderr.write(f"{stream.name}\n")
    page = table(found)
    sys.stdout.write(f"{page}\n")
    if arguments:
        replace_between(Path(arguments[0]) / "progress-yardstick.md", "amended", page)


if __name__ == "__main__":
    main(sys.argv[1:])
