"""Yardstick of progress policies: compare one with K-slack and with the best fixed delay, known only in hindsight.

The latency of a window is how far the clock has passed its end when it is answered. The clock is the time of arrival of
a batch's last row, if it is given, else the newest event time. The policies process counts by pane instead of rows, so
a year of a stream takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from skypane.progress.kslack import KSlack
from skypane.progress.pane_arrivals import PaneArrivals, SourceCount
from skypane.progress.progress_policy import ProgressPolicy
from skypane.types import BoolArray, ConfigError, FloatArray, IntArray, Micros
from skypane.windows import Windows

_NOT_YET = -(1 << 62)
#: Rows of a stretch over which the worst excess over a budget is measured.
STRETCH = 10_000
#: Warm-up of a policy before it is scored: rows of the budget, and cycles of a pane and the slack.
WARM_ROWS, WARM_CYCLES = 100, 8


@dataclass(frozen=True, eq=False)
class BatchedStream:
    """A stream cut into batches of `batch` rows, with counts by pane; arrays over the panes of all batches."""

    windows: Windows
    batch: int
    arrivals: Sequence[PaneArrivals]
    #: For each pane of each batch: the batch, the end of the pane (microseconds), the rows.
    step: IntArray
    pane_end: IntArray
    rows: IntArray
    #: When each batch has arrived (microseconds), if it is known.
    arrived: IntArray | None = None

    @classmethod
    def of(
        cls,
        event: IntArray,
        windows: Windows,
        batch: int,
        arrival: IntArray | None = None,
        source: IntArray | None = None,
        source_names: Sequence[str] = (),
    ) -> Self:
        """Return the stream of `event`, times in the order of `arrival`; the last batch may be smaller.

        source         the number of each row's source, if the sources are known
        source_names   the names of the sources by their numbers; by default "source 0" and so on
        """
        if batch < 1:
            raise ConfigError(f"a batch needs at least 1 row, got {batch}")
        last = np.minimum(np.arange(batch, len(event) + batch, batch), len(event)) - 1
        arrived = None if arrival is None else arrival[last]
        sources = [{}] * len(last) if source is None else _sources(event, source, batch, source_names)
        step, pane = np.arange(len(event)) // batch, windows.panes_at(event)
        order = np.lexsort((event, pane, step))
        step, pane, event = step[order], pane[order], event[order]
        first = np.flatnonzero((np.diff(step, prepend=-1) != 0) | (np.diff(pane, prepend=pane[:1]) != 0))
        rows = np.diff(np.append(first, len(event)))
        step, start = step[first], windows.pane_start(pane[first])
        end, oldest, newest = windows.pane_end(pane[first]), event[first], event[first + rows - 1]
        cuts = [*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(step)]
        parts = (slice(*bounds) for bounds in pairwise(cuts))
        arrivals = [
            PaneArrivals(start[part], end[part], rows[part], oldest[part], newest[part], known, windows=windows)
            for part, known in zip(parts, sources, strict=True)
        ]
        return cls(windows, batch, arrivals, step, end, rows, arrived)


@dataclass(frozen=True, eq=False)
class PolicyRun:
    """Results of a policy: arrays over the batches."""

    punctuation: IntArray
    newest: IntArray
    #: By what latency is measured: the time of arrival, or the newest time.
    clock: IntArray
    slack: IntArray
    seen: IntArray
    dropped: IntArray
    #: The reason for the last punctuation.
    because: str

    @classmethod
    def of(cls, policy: ProgressPolicy, cut: BatchedStream) -> Self:
        """Return the run of a policy over all batches."""
        states, state, because = [], policy.init(), ""
        for arrivals in cut.arrivals:
            state, decision = policy.decide(state, arrivals)
            because = decision.because
            times = (_NOT_YET if time is None else time for time in (state.punctuation, state.newest))
            states.append((*times, state.slack, state.seen, state.dropped))
        punctuation, newest, slack, seen, dropped = np.array(states, np.int64).T
        clock = newest if cut.arrived is None else cut.arrived
        return cls(punctuation, newest, clock, slack, seen, dropped, because)

    @classmethod
    def fixed(cls, delay: Micros, like: PolicyRun, cut: BatchedStream) -> Self:
        """Return the run of a fixed delay over the newest times of another run."""
        punctuation = np.maximum.accumulate(like.newest - delay)
        before = np.concatenate([[_NOT_YET], punctuation[:-1]])[cut.step]
        late = np.where(cut.pane_end <= before, cut.rows, 0)
        dropped = np.cumsum(np.bincount(cut.step, weights=late, minlength=len(like.seen))).astype(np.int64)
        slack = np.full(len(like.seen), delay)
        return cls(punctuation, like.newest, like.clock, slack, like.seen, dropped, like.because)

    def answered(self, ends: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return the latency of the windows with these ends, and a mask of those that are answered."""
        step = np.searchsorted(self.punctuation, ends)
        done = step < len(self.punctuation)
        return (self.clock[np.minimum(step, len(self.clock) - 1)] - ends).astype(np.float64), done

    def held(self, ends: IntArray) -> Micros:
        """Return how far, at most, the clock had passed a window's end in the batch before its answer."""
        step = np.searchsorted(self.punctuation, ends)
        waited = (step > 0) & (step < len(self.punctuation))
        return int(np.max(self.clock[step[waited] - 1] - ends[waited], initial=0))

    def silence(self, ends: IntArray) -> Micros:
        """Return the longest time without an answer, up to the batch before the next answer."""
        counts = np.searchsorted(ends, self.punctuation, side="right")
        answering = np.flatnonzero(np.diff(counts, prepend=0))
        if not len(answering):
            return int(self.clock[-1] - self.clock[0])
        started = self.clock[np.concatenate([[0], answering])]
        ended = self.clock[np.concatenate([np.maximum(answering - 1, 0), [len(self.clock) - 1]])]
        return int((ended - started).max())

    def first(self, ends: IntArray) -> Micros | None:
        """Return the time from the first batch to the first answer, or None if there is none."""
        answering = np.flatnonzero(np.searchsorted(ends, self.punctuation, side="right"))
        return int(self.clock[answering[0]] - self.clock[0]) if len(answering) else None

    def worst_excess(self, budget: float) -> float:
        """Return the largest number of rows dropped beyond the budget in any STRETCH rows (whole batches)."""
        seen = np.concatenate([[0], self.seen])
        dropped = np.concatenate([[0], self.dropped])
        start = np.maximum(np.searchsorted(seen, seen - STRETCH, side="right") - 1, 0)
        excess = dropped - dropped[start] - budget * (seen - seen[start])
        return float(max(0.0, excess.max()))


@dataclass(frozen=True, slots=True)
class PolicyScore:
    """Score of one policy; times in microseconds, `drop` the share of rows dropped after warm-up.

    mean, p99   latency of the `answered` windows after warm-up; 0 if there are none
    """

    drop: float
    answered: int
    mean: float
    p99: float
    silence: Micros
    first: Micros | None
    excess: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores on one stream: the `tested` policy, K-slack, and the best fixed delay that drops no more rows."""

    tested: PolicyScore
    fixed: PolicyScore
    kslack: PolicyScore
    #: The best fixed delay (microseconds).
    delay: Micros
    budget: float
    #: Shares of all rows dropped by the policy and by K-slack.
    dropped: float
    unavoidable: float
    #: The largest share of rows dropped by the policy but not by K-slack, at any batch after warm-up.
    chosen: float
    #: Longest delay seen (microseconds), and the longest time by which a window was held (to the batch before its
    #: answer).
    longest: Micros
    held: Micros
    #: Whether the stream after the warm-up is at least as long as the warm-up; if not, the scores mean nothing.
    judged: bool
    because: str
    #: Scores of further policies, on the same windows.
    others: tuple[PolicyScore, ...] = ()

    @property
    def ratios(self) -> tuple[float, float]:
        """Mean and p99 latency as multiples of those of the best fixed delay."""
        return self.tested.mean / max(self.fixed.mean, 1.0), self.tested.p99 / max(self.fixed.p99, 1.0)


def measure(
    event: IntArray,
    windows: Windows,
    batch: int,
    policy: ProgressPolicy,
    arrival: IntArray | None = None,
    source: IntArray | None = None,
    source_names: Sequence[str] = (),
    others: Sequence[ProgressPolicy] = (),
) -> Comparison:
    """Return the comparison for a policy with a budget on `event`, times in the order of `arrival` (microseconds).

    source         the number of each row's source, if the sources are known; K-slack, with which the policy is compared, knows them too
    source_names   as in BatchedStream.of()
    others         further policies, with or without a budget, to be scored on the same stream

    Windows that end before the first arrival are not scored.
    """
    budget = policy.drop_budget
    if budget is None:
        raise ConfigError(f"policy must have a drop budget, got {type(policy).__name__}; use AqKSlack(max_drop=...)")
    _check(others, sources_known=source is not None)
    cut = BatchedStream.of(event, windows, batch, arrival, source, source_names)
    tested, patient = PolicyRun.of(policy, cut), PolicyRun.of(KSlack(), cut)
    ends = window_ends(event, windows)
    start, judged = _warm(tested, patient, windows, budget)
    delay = best_fixed(cut, tested, start)
    runs = (tested, PolicyRun.fixed(delay, tested, cut), patient)
    common = np.all([run.answered(ends)[1] for run in runs[:2]], axis=0) & (ends > tested.clock[start])
    tested_score, fixed_score, patient_score = (_score(run, ends, common, start, budget) for run in runs)
    chosen = (tested.dropped - patient.dropped)[start:] / tested.seen[start:]
    return Comparison(
        tested=tested_score,
        fixed=fixed_score,
        kslack=patient_score,
        delay=delay,
        budget=budget,
        dropped=float(tested.dropped[-1] / tested.seen[-1]),
        unavoidable=float(patient.dropped[-1] / patient.seen[-1]),
        chosen=float(chosen.max()),
        longest=int(patient.slack[-1]),
        held=tested.held(ends),
        judged=judged,
        because=tested.because,
        others=tuple(_score(PolicyRun.of(other, cut), ends, common, start, budget) for other in others),
    )


def _check(others: Sequence[ProgressPolicy], *, sources_known: bool) -> None:
    """Raise ConfigError if a policy needs what a recorded stream lacks."""
    for policy in others:
        name = type(policy).__name__
        if policy.needs_source and not sources_known:
            raise ConfigError(f"{name} needs the source of each row: name its column")
        if policy.needs_arrival:
            raise ConfigError(
                f"{name} needs the time of each micro-batch, which a recording lacks: give idle_after in batches"
            )
        if policy.judges_clocks:
            raise ConfigError(
                f"{name} would correct or quarantine rows, which are scored as they are: leave clocks out"
            )


def _sources(event: IntArray, source: IntArray, batch: int, names: Sequence[str]) -> list[dict[str, SourceCount]]:
    """Return the counts by source of each batch; no row is counted as late, which decides nothing."""
    found = []
    for at in range(0, len(event), batch):
        numbers, place, rows = np.unique(source[at : at + batch], return_inverse=True, return_counts=True)
        newest = np.full(len(numbers), _NOT_YET)
        np.maximum.at(newest, place, event[at : at + batch])
        counts = zip(numbers.tolist(), rows.tolist(), newest.tolist(), strict=True)
        found.append(
            {names[number] if names else f"source {number}": SourceCount(n, 0, last) for number, n, last in counts}
        )
    return found


def best_fixed(cut: BatchedStream, run: PolicyRun, start: int) -> Micros:
    """Return the smallest fixed delay that drops at most as many rows after batch `start` as `run`."""
    before = np.concatenate([[_NOT_YET], run.newest[:-1]])[cut.step]
    judged = cut.step > start
    distance, rows = (before - cut.pane_end)[judged], cut.rows[judged]
    order = np.argsort(-distance, kind="stable")
    at = int(np.searchsorted(np.cumsum(rows[order]), run.dropped[-1] - run.dropped[start], side="right"))
    return max(0, int(distance[order[at]]) + 1) if at < len(order) else 0


def window_ends(event: IntArray, windows: Windows) -> IntArray:
    """Return the ends of all windows that hold a row, ascending."""
    panes = np.unique(windows.panes_at(event))
    last, per_slide = panes // windows.panes_per_slide, windows.panes_per_slide
    first = -((windows.panes_per_window - 1 - panes) // per_slide)
    numbers = np.unique(np.concatenate([np.minimum(first + step, last) for step in range(windows.overlap)]))
    return windows.offset + numbers * windows.slide + windows.length


def _warm(run: PolicyRun, patient: PolicyRun, windows: Windows, budget: float) -> tuple[int, bool]:
    """Return the last batch of the warm-up, and whether as many rows follow; otherwise the warm-up is a fifth."""
    watched = run.newest - run.newest[0] >= WARM_CYCLES * (windows.longest_pane + run.slack)
    warm = np.flatnonzero(watched & (run.seen * budget >= WARM_ROWS))
    fifth = len(run.seen) // 5
    if len(warm) and max(warm[0], fifth) <= len(run.seen) // 2 and patient.dropped[-1] <= budget * run.seen[-1] / 2:
        return int(max(warm[0], fifth)), True
    return fifth, False


def _score(run: PolicyRun, ends: IntArray, common: BoolArray, start: int, budget: float) -> PolicyScore:
    latency, done = run.answered(ends)
    judged = latency[common & done]
    seen, dropped = run.seen[-1] - run.seen[start], run.dropped[-1] - run.dropped[start]
    return PolicyScore(
        drop=float(dropped / seen) if seen else 0.0,
        answered=len(judged),
        mean=float(judged.mean()) if len(judged) else 0.0,
        p99=float(np.quantile(judged, 0.99)) if len(judged) else 0.0,
        silence=run.silence(ends),
        first=run.first(ends),
        excess=run.worst_excess(budget),
    )
