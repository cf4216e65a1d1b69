"""The yardstick: a law against K-slack and against the best fixed delay, which is known only afterwards.

Everything is in event time: the latency of a window is how far the newest time has gone past its end when it is
answered. The stream is taken through the laws without its rows, by counts alone; a year of it takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from skypane.progress.arrivals import Arrivals
from skypane.progress.kslack import KSlack
from skypane.progress.policy import ProgressPolicy, ProgressState
from skypane.types import BoolArray, ConfigError, FloatArray, IntArray, Micros
from skypane.windows import Windows

_NOT_YET = -(1 << 62)
#: Rows of any stretch over which the worst excess over a budget is looked for.
STRETCH = 10_000
#: Rows of the budget, and pane and slack times, that a law may learn from before it is judged.
WARM_ROWS, WARM_CYCLES = 100, 8


@dataclass(frozen=True, eq=False)
class Cut:
    """A stream cut into batches of so many rows each, summed up by pane; arrays over the panes of all batches."""

    windows: Windows
    batch: int
    arrivals: Sequence[Arrivals]
    #: For each pane of each batch: the batch, the end of the pane (microseconds), the rows.
    step: IntArray
    pane_end: IntArray
    rows: IntArray

    @classmethod
    def of(cls, event: IntArray, windows: Windows, batch: int) -> Self:
        """Cut `event`, times in the order of arrival; the last batch may be smaller."""
        if batch < 1:
            raise ConfigError(f"a batch needs at least 1 row, got {batch}")
        step, pane = np.arange(len(event)) // batch, windows.panes_at(event)
        order = np.lexsort((event, pane, step))
        step, pane, event = step[order], pane[order], event[order]
        first = np.flatnonzero((np.diff(step, prepend=-1) != 0) | (np.diff(pane, prepend=pane[:1]) != 0))
        rows = np.diff(np.append(first, len(event)))
        step, start = step[first], windows.pane_start(pane[first])
        end, oldest, newest = windows.pane_end(pane[first]), event[first], event[first + rows - 1]
        cuts = [*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(step)]
        parts = (slice(*bounds) for bounds in pairwise(cuts))
        arrivals = [Arrivals(start[part], end[part], rows[part], oldest[part], newest[part]) for part in parts]
        return cls(windows, batch, arrivals, step, end, rows)


@dataclass(frozen=True, eq=False)
class Run:
    """What a law did: arrays over the batches."""

    punctuation: IntArray
    newest: IntArray
    slack: IntArray
    seen: IntArray
    dropped: IntArray
    #: The state at the end.
    last: ProgressState

    @classmethod
    def of(cls, policy: ProgressPolicy, cut: Cut) -> Self:
        """Take all batches through a policy."""
        states, state = [], policy.init()
        for arrivals in cut.arrivals:
            state = policy.step(state, arrivals)
            times = (_NOT_YET if time is None else time for time in (state.punctuation, state.newest))
            states.append((*times, state.slack, state.seen, state.dropped))
        punctuation, newest, slack, seen, dropped = np.array(states, np.int64).T
        return cls(punctuation, newest, slack, seen, dropped, state)

    @classmethod
    def fixed(cls, delay: Micros, like: Run, cut: Cut) -> Self:
        """Return the run of a fixed delay, over the newest times that another run has believed."""
        punctuation = np.maximum.accumulate(like.newest - delay)
        before = np.concatenate([[_NOT_YET], punctuation[:-1]])[cut.step]
        late = np.where(cut.pane_end <= before, cut.rows, 0)
        dropped = np.cumsum(np.bincount(cut.step, weights=late, minlength=len(like.seen))).astype(np.int64)
        slack = np.full(len(like.seen), delay)
        return cls(punctuation, like.newest, slack, like.seen, dropped, last=like.last)

    def answered(self, ends: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return how far the newest time is past each of these window ends when it is answered, and which ones are."""
        step = np.searchsorted(self.punctuation, ends)
        done = step < len(self.punctuation)
        return (self.newest[np.minimum(step, len(self.newest) - 1)] - ends).astype(np.float64), done

    def held(self, ends: IntArray) -> Micros:
        """Return how far the newest time went past a window's end, at most, with the batch before its answer."""
        step = np.searchsorted(self.punctuation, ends)
        waited = (step > 0) & (step < len(self.punctuation))
        return int(np.max(self.newest[step[waited] - 1] - ends[waited], initial=0))

    def silence(self, ends: IntArray) -> Micros:
        """Return the longest event time that passed without an answer, the last batch before the next one's end."""
        counts = np.searchsorted(ends, self.punctuation, side="right")
        told = np.flatnonzero(np.diff(counts, prepend=0))
        if not len(told):
            return int(self.newest[-1] - self.newest[0])
        started = self.newest[np.concatenate([[0], told])]
        ended = self.newest[np.concatenate([np.maximum(told - 1, 0), [len(self.newest) - 1]])]
        return int((ended - started).max())

    def first(self, ends: IntArray) -> Micros | None:
        """Return the event time from the first batch to the first answer, None if there is none."""
        told = np.flatnonzero(np.searchsorted(ends, self.punctuation, side="right"))
        return int(self.newest[told[0]] - self.newest[0]) if len(told) else None

    def worst_excess(self, budget: float) -> float:
        """Return how many rows more than the budget were dropped, at worst, in any STRETCH rows (whole batches)."""
        seen = np.concatenate([[0], self.seen])
        dropped = np.concatenate([[0], self.dropped])
        start = np.maximum(np.searchsorted(seen, seen - STRETCH, side="right") - 1, 0)
        excess = dropped - dropped[start] - budget * (seen - seen[start])
        return float(max(0.0, excess.max()))


@dataclass(frozen=True, slots=True)
class Score:
    """What one law is worth; times in microseconds, `drop` the share of rows dropped after warm-up."""

    drop: float
    mean: float
    p99: float
    silence: Micros
    first: Micros | None
    excess: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A law, K-slack, and the best fixed delay that drops no more than the law, on one stream."""

    law: Score
    fixed: Score
    kslack: Score
    #: The best fixed delay (microseconds).
    delay: Micros
    budget: float
    #: Of all rows, the share that the law dropped in the end, and that K-slack did.
    dropped: float
    unavoidable: float
    #: The largest share that the law chose to drop, K-slack's taken off, at any batch after warm-up.
    chosen: float
    #: Longest delay seen (microseconds), and the longest that a window was held (to the batch before its answer).
    longest: Micros
    held: Micros
    #: Whether the stream goes on for as long again as the warm-up takes; if not, there is nothing to judge.
    judged: bool
    because: str

    @property
    def ratios(self) -> tuple[float, float]:
        """Mean and p99 latency as multiples of the best fixed delay's."""
        return self.law.mean / max(self.fixed.mean, 1.0), self.law.p99 / max(self.fixed.p99, 1.0)


def measure(event: IntArray, windows: Windows, batch: int, policy: ProgressPolicy) -> Measure:
    """Return how a law with a budget does on `event`, times in the order of arrival (microseconds)."""
    budget = policy.drop_budget
    if budget is None:
        raise ConfigError(f"the yardstick is for laws with a budget, got {type(policy).__name__}")
    cut = Cut.of(event, windows, batch)
    law, patient = Run.of(policy, cut), Run.of(KSlack(), cut)
    ends = window_ends(event, windows)
    start, judged = _warm(law, patient, windows, budget)
    delay = best_fixed(cut, law, start)
    runs = (law, Run.fixed(delay, law, cut), patient)
    common = np.all([run.answered(ends)[1] for run in runs[:2]], axis=0) & (ends > law.newest[start])
    law_score, fixed_score, patient_score = (_score(run, ends, common, start, budget) for run in runs)
    chosen = (law.dropped - patient.dropped)[start:] / law.seen[start:]
    return Measure(
        law=law_score,
        fixed=fixed_score,
        kslack=patient_score,
        delay=delay,
        budget=budget,
        dropped=float(law.dropped[-1] / law.seen[-1]),
        unavoidable=float(patient.dropped[-1] / patient.seen[-1]),
        chosen=float(chosen.max()),
        longest=int(patient.slack[-1]),
        held=law.held(ends),
        judged=judged,
        because=policy.explain(law.last),
    )


def best_fixed(cut: Cut, law: Run, start: int) -> Micros:
    """Return the smallest fixed delay that drops no more rows after batch `start` than the law does."""
    before = np.concatenate([[_NOT_YET], law.newest[:-1]])[cut.step]
    judged = cut.step > start
    distance, rows = (before - cut.pane_end)[judged], cut.rows[judged]
    order = np.argsort(-distance, kind="stable")
    at = int(np.searchsorted(np.cumsum(rows[order]), law.dropped[-1] - law.dropped[start], side="right"))
    return max(0, int(distance[order[at]]) + 1) if at < len(order) else 0


def window_ends(event: IntArray, windows: Windows) -> IntArray:
    """Return the ends of all windows that hold a row, ascending."""
    panes = np.unique(windows.panes_at(event))
    last, per_slide = panes // windows.panes_per_slide, windows.panes_per_slide
    first = -((windows.panes_per_window - 1 - panes) // per_slide)
    numbers = np.unique(np.concatenate([np.minimum(first + step, last) for step in range(windows.overlap)]))
    return windows.offset + numbers * windows.slide + windows.length


def _warm(law: Run, patient: Run, windows: Windows, budget: float) -> tuple[int, bool]:
    """Return the batch with which warm-up is over, and whether there are as many rows after it; else a fifth is cut."""
    watched = law.newest - law.newest[0] >= WARM_CYCLES * (windows.longest_pane + law.slack)
    warm = np.flatnonzero(watched & (law.seen * budget >= WARM_ROWS))
    fifth = len(law.seen) // 5
    if len(warm) and max(warm[0], fifth) <= len(law.seen) // 2 and patient.dropped[-1] <= budget * law.seen[-1] / 2:
        return int(max(warm[0], fifth)), True
    return fifth, False


def _score(run: Run, ends: IntArray, common: BoolArray, start: int, budget: float) -> Score:
    latency, done = run.answered(ends)
    judged = latency[common & done]
    seen, dropped = run.seen[-1] - run.seen[start], run.dropped[-1] - run.dropped[start]
    return Score(
        drop=float(dropped / seen) if seen else 0.0,
        mean=float(judged.mean()) if len(judged) else 0.0,
        p99=float(np.quantile(judged, 0.99)) if len(judged) else 0.0,
        silence=run.silence(ends),
        first=run.first(ends),
        excess=run.worst_excess(budget),
    )
