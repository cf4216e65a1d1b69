"""Check the laws of a progress policy on random streams with late rows.

def test_my_policy_keeps_the_laws():
    check_progress_policy(MyPolicy("10 seconds"))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from skypane.progress.pane_arrivals import PaneArrivals, SourceCount
from skypane.progress.progress_policy import ProgressPolicy, ProgressState
from skypane.testing.policy_kit import check_policy
from skypane.types import IntArray, Micros
from skypane.windows import Windows

SOURCES: Final = ("east", "north", "west")
_START: Final = 1_700_000_000_000_000
"""A realistic event time in 2023, in microseconds."""
_LONG: Final = 400
"""Batches of the stream on which the size of a state is checked."""


@dataclass(frozen=True, eq=False)
class PolicyBatch:
    """Rows of one micro-batch: event times in microseconds, and the number of each row's source."""

    times: IntArray
    sources: IntArray

    def __repr__(self) -> str:
        """Return the times relative to _START."""
        return str((self.times - _START).tolist())


@dataclass(frozen=True, eq=False)
class DrawnStream:
    """A stream: its batches, the windows whose panes summarise it, and a random generator for the checks."""

    batches: tuple[PolicyBatch, ...]
    windows: Windows
    rng: np.random.Generator

    def arrivals(self, batch: PolicyBatch, punctuation: Micros | None = None) -> PaneArrivals:
        """Return the arrivals of a batch as the engine reports them, given the punctuation before it."""
        arrivals = PaneArrivals.of_times(batch.times, self.windows)
        late = self._late(batch.times, punctuation)
        sources = {
            SOURCES[number]: SourceCount(
                int((batch.sources == number).sum()),
                int(late[batch.sources == number].sum()),
                int(batch.times[batch.sources == number].max()),
            )
            for number in np.unique(batch.sources).tolist()
        }
        return replace(arrivals, sources=sources)

    def _late(self, times: IntArray, punctuation: Micros | None) -> IntArray:
        if punctuation is None:
            return np.zeros(len(times), np.int64)
        ends = self.windows.pane_end(self.windows.panes_at(times))
        return np.asarray(ends <= punctuation, np.int64)


Law = Callable[[ProgressPolicy, DrawnStream], bool]


def check_progress_policy(policy: ProgressPolicy, *, tries: int = 20, seed: int = 0) -> None:
    """Raise AssertionError, which names the law and the stream, if `policy` breaks one on `tries` random streams.

    The laws are those of every policy (check_policy), and those of progress.
    Streams are nearly in order, with batches of 1 to 30 rows from three sources. Their times are microseconds to
    minutes apart, and some rows are far behind or ahead of the rest.
    """
    rng = np.random.default_rng(seed)
    for _ in range(max(tries, 1)):
        drawn = _drawn(rng)
        for law, keeps in LAWS.items():
            if not keeps(policy, drawn):
                raise AssertionError(
                    f"{policy!r} breaks a law: {law}; with panes of {drawn.windows.slide} us and batches of times "
                    f"{list(drawn.batches)}, relative to {_START}"
                )
    batches = [arrivals for _, arrivals, _ in _steps(policy, drawn)]
    check_policy(policy, measured=[None], known=[PaneArrivals.none(), *batches], tries=tries, seed=seed)
    if not _bounded(policy, drawn):
        raise AssertionError(f"{policy!r} breaks a law: a state does not grow with the stream; with {drawn.batches[0]}")


def _drawn(rng: np.random.Generator) -> DrawnStream:
    step = int(10 ** rng.uniform(0, 8))
    pane = max(1, int(step * 10 ** rng.uniform(0, 1.5)))
    now, batches = _START, []
    for rows in rng.integers(1, 31, rng.integers(1, 13)).tolist():
        advance = np.cumsum(rng.integers(0, 2 * step + 1, rows))
        delay = np.where(rng.random(rows) < 0.3, rng.pareto(1.0, rows) * step, 0.0)
        times = now + advance - np.minimum(delay, 1_000 * step).astype(np.int64)
        now += int(advance[-1])
        if rng.random() < 0.1:
            times[rng.integers(rows)] += int(10 ** rng.uniform(9, 14))  # a wrong clock
        batches.append(PolicyBatch(times, rng.integers(0, len(SOURCES), rows)))
    return DrawnStream(tuple(batches), Windows(pane, pane), rng)


def _steps(policy: ProgressPolicy, drawn: DrawnStream) -> Iterator[tuple[ProgressState, PaneArrivals, ProgressState]]:
    """Yield the state before each batch, its arrivals, and the state after it, as in the engine."""
    state = policy.init()
    for batch in drawn.batches:
        arrivals = drawn.arrivals(batch, state.punctuation)
        after = _after(policy, state, arrivals)
        yield state, arrivals, after
        state = after


def _after(policy: ProgressPolicy, state: ProgressState, arrivals: PaneArrivals) -> ProgressState:
    after: ProgressState = policy.decide(state, arrivals)[0]
    return after


def _never_back(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    return all(
        _not_before(before.punctuation, after.punctuation) and _not_before(before.newest, after.newest)
        for before, _, after in _steps(policy, drawn)
    )


def _time_of_state(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    decided = (policy.decide(before, arrivals) for before, arrivals, _ in _steps(policy, drawn))
    return all(decision.value.time == after.punctuation for after, decision in decided)


def _not_before(first: Micros | None, second: Micros | None) -> bool:
    return first is None or (second is not None and second >= first)


def _counted(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    """Compare the counts with the decision: accepted rows, also held ones, are seen, and late ones are dropped."""
    for before, arrivals, after in _steps(policy, drawn):
        future = policy.decide(before, arrivals)[1].value.future
        accepted = arrivals.upto(future.limit).union(future.followed.arrivals().upto(future.limit))
        late = accepted.late(before.punctuation)
        if (after.seen - before.seen, after.dropped - before.dropped) != (accepted.total, late):
            return False
        if after.held.rows != before.held.rows + arrivals.total - accepted.total - future.abandoned.rows:
            return False
    return True


def _in_order_none_late(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    """Sort the rows, so that each source is in order, and cut them at random into as many batches."""
    times = np.sort(np.concatenate([batch.times for batch in drawn.batches]))
    sources = drawn.rng.integers(0, len(SOURCES), len(times))
    cuts = np.sort(drawn.rng.integers(0, len(times) + 1, len(drawn.batches)))
    parts = zip(np.split(times, cuts), np.split(sources, cuts), strict=True)
    cut = replace(drawn, batches=tuple(PolicyBatch(*part) for part in parts if len(part[0])))
    return all(after.dropped == 0 for _, _, after in _steps(policy, cut))


def _order_in_a_batch(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    if policy.needs_order:
        return True

    def shuffled(batch: PolicyBatch) -> PolicyBatch:
        order = drawn.rng.permutation(len(batch.times))
        return PolicyBatch(batch.times[order], batch.sources[order])

    state = other = policy.init()
    for batch in drawn.batches:
        arrivals = drawn.arrivals(shuffled(batch), other.punctuation)
        turned = dict(reversed(list(arrivals.sources.items())))
        state = _after(policy, state, drawn.arrivals(batch, state.punctuation))
        other = _after(policy, other, replace(arrivals, sources=turned))
        if state != other:
            return False
    return True


def _nothing_of_nothing(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    if policy.init().punctuation is not None or _after(policy, policy.init(), PaneArrivals.none()) != policy.init():
        return False
    return all(_after(policy, after, PaneArrivals.none()) == after for _, _, after in _steps(policy, drawn))


def _closed(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    for _, _, after in _steps(policy, drawn):
        for time in (_START - 1, int(drawn.rng.integers(_START, _START + 10**9)), _START + 10**15):
            closed = policy.close(after, time).punctuation
            if closed != (time if after.punctuation is None else max(time, after.punctuation)):
                return False
    return True


def _settled(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    for _, _, after in _steps(policy, drawn):
        settled, decision = policy.settle(after)
        abandoned = decision.value.future.abandoned.rows
        if settled.held.rows or settled.seen - after.seen + abandoned != after.held.rows:
            return False
    return True


def _described(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    del drawn
    described = policy.describe()
    again = deepcopy(policy)
    return bool(json.loads(json.dumps(described)) == described == again.describe()) and policy == again


def _bounded(policy: ProgressPolicy, drawn: DrawnStream) -> bool:
    """Repeat the same batch: after four times as many batches, the state must not have more values."""
    length = int(drawn.batches[0].times.max() - drawn.batches[0].times.min()) + drawn.windows.slide
    state, sizes = policy.init(), []
    for number in range(_LONG):
        batch = replace(drawn.batches[0], times=drawn.batches[0].times + number * length)
        state = _after(policy, state, drawn.arrivals(batch, state.punctuation))
        if number + 1 in {_LONG // 4, _LONG}:
            sizes.append(_values(policy.snapshot(state)))
    return sizes[1] <= 1.5 * sizes[0] + 32


def _values(snapshot: Any) -> int:
    """Return the number of values within a JSON value."""
    inner: Sequence[Any] = list(snapshot.values()) if isinstance(snapshot, dict) else snapshot
    return 1 + sum(map(_values, inner)) if isinstance(inner, list | tuple) else 1


LAWS: Final[dict[str, Law]] = {
    "the punctuation and the newest time never decrease": _never_back,
    "a decision has the punctuation of the state after it": _time_of_state,
    "each row is seen, held or abandoned, and is dropped if its pane was closed before": _counted,
    "rows in order are never late, however they are cut into batches": _in_order_none_late,
    "the order of rows in a batch makes no difference, unless the policy needs it": _order_in_a_batch,
    "a batch without rows changes nothing, and before the first row there is no punctuation": _nothing_of_nothing,
    "close() moves the punctuation to its time, but never decreases it": _closed,
    "settle() leaves no held row, and loses none": _settled,
    "describe() returns a JSON value, which equals that of a copy": _described,
}
"""Laws of every progress policy, beside those of every policy."""
