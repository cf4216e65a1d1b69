"""The laws of a policy of progress, tried on late streams that are drawn at random.

def test_my_policy_keeps_the_laws():
    check_policy(MyPolicy("10 seconds"))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from skypane.progress.arrivals import Arrivals, SourceCount
from skypane.progress.policy import ProgressPolicy, ProgressState
from skypane.types import CheckpointError, IntArray, Micros
from skypane.windows import Windows

SOURCES: Final = ("east", "north", "west")
_START: Final = 1_700_000_000_000_000
"""A day in 2023, in microseconds: times as they come."""
_LONG: Final = 400
"""Batches of the stream by which a state is held to be bounded."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one micro-batch: event times in microseconds, and the number of each row's source."""

    times: IntArray
    sources: IntArray

    def __repr__(self) -> str:
        """The times, counted from where streams begin."""
        return str((self.times - _START).tolist())


@dataclass(frozen=True, eq=False)
class Drawn:
    """A stream: its batches, the windows whose panes it is summed up by, and chance for what a law draws of its own."""

    batches: tuple[Batch, ...]
    windows: Windows
    rng: np.random.Generator

    def arrivals(self, batch: Batch, punctuation: Micros | None = None) -> Arrivals:
        """Return what the engine tells of a batch, given the punctuation before it."""
        arrivals = Arrivals.of_times(batch.times, self.windows)
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


Law = Callable[[ProgressPolicy, Drawn], bool]


def check_policy(policy: ProgressPolicy, *, tries: int = 20, seed: int = 0) -> None:
    """Raise AssertionError, naming the law and the stream, if `policy` breaks one on `tries` streams drawn at random.

    Streams are nearly in order, of batches of one row to thirty, and of three sources; their times lie microseconds to
    minutes apart, and some rows far behind or ahead of the rest.
    """
    rng = np.random.default_rng(seed)
    for _ in range(max(tries, 1)):
        drawn = _drawn(rng)
        for law, keeps in LAWS.items():
            if not keeps(policy, drawn):
                raise AssertionError(
                    f"{policy!r} breaks a law: {law}; seen with panes of {drawn.windows.slide} us and batches of times "
                    f"{list(drawn.batches)}, counted from {_START}"
                )
    if not _bounded(policy, drawn):
        raise AssertionError(
            f"{policy!r} breaks a law: a state does not grow with the stream; seen with {drawn.batches[0]}"
        )


def _drawn(rng: np.random.Generator) -> Drawn:
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
        batches.append(Batch(times, rng.integers(0, len(SOURCES), rows)))
    return Drawn(tuple(batches), Windows(pane, pane), rng)


def _states(policy: ProgressPolicy, drawn: Drawn) -> Iterator[tuple[ProgressState, Arrivals, ProgressState]]:
    """Yield the state before each batch, what comes, and the state after it, as the engine takes them."""
    state = policy.init()
    for batch in drawn.batches:
        arrivals = drawn.arrivals(batch, state.punctuation)
        after = policy.step(state, arrivals)
        yield state, arrivals, after
        state = after


def _never_back(policy: ProgressPolicy, drawn: Drawn) -> bool:
    return all(
        _not_before(before.punctuation, after.punctuation) and _not_before(before.newest, after.newest)
        for before, _, after in _states(policy, drawn)
    )


def _not_before(first: Micros | None, second: Micros | None) -> bool:
    return first is None or (second is not None and second >= first)


def _counted(policy: ProgressPolicy, drawn: Drawn) -> bool:
    """By the verdict: of what is believed, what was held before with it, all is seen, and what was closed is dropped."""
    for before, arrivals, after in _states(policy, drawn):
        verdict = policy.judge(before, arrivals)
        believed = arrivals.upto(verdict.limit)
        if verdict.followed is not None:
            believed = believed.union(verdict.followed.upto(verdict.limit))
        late = believed.late(before.punctuation)
        if (after.seen - before.seen, after.dropped - before.dropped) != (believed.total, late):
            return False
        held_before, given_up = before.held.rows, verdict.given_up.rows
        if after.held.rows != held_before + arrivals.total - believed.total - given_up:
            return False
    return True


def _in_order_none_late(policy: ProgressPolicy, drawn: Drawn) -> bool:
    """Of each source, and of all of them together, rows come in order; cut anew, into as many batches."""
    times = np.sort(np.concatenate([batch.times for batch in drawn.batches]))
    sources = drawn.rng.integers(0, len(SOURCES), len(times))
    cuts = np.sort(drawn.rng.integers(0, len(times) + 1, len(drawn.batches)))
    parts = zip(np.split(times, cuts), np.split(sources, cuts), strict=True)
    cut = replace(drawn, batches=tuple(Batch(*part) for part in parts if len(part[0])))
    return all(after.dropped == 0 for _, _, after in _states(policy, cut))


def _order_in_a_batch(policy: ProgressPolicy, drawn: Drawn) -> bool:
    def shuffled(batch: Batch) -> Batch:
        order = drawn.rng.permutation(len(batch.times))
        return Batch(batch.times[order], batch.sources[order])

    state = other = policy.init()
    for batch in drawn.batches:
        arrivals = drawn.arrivals(shuffled(batch), other.punctuation)
        turned = dict(reversed(list(arrivals.sources.items())))
        state = policy.step(state, drawn.arrivals(batch, state.punctuation))
        other = policy.step(other, replace(arrivals, sources=turned))
        if state != other:
            return False
    return True


def _restored(policy: ProgressPolicy, drawn: Drawn) -> bool:
    """Restored before each batch, by a copy of the policy, as after a restart."""
    state = policy.init()
    for _, arrivals, after in _states(policy, drawn):
        again = deepcopy(policy)
        state = again.step(again.restore(json.loads(json.dumps(state.snapshot()))), arrivals)
        if state != after:
            return False
    return True


def _pure(policy: ProgressPolicy, drawn: Drawn) -> bool:
    for before, arrivals, after in _states(policy, drawn):
        noted = json.dumps(before.snapshot())
        verdicts = policy.judge(before, arrivals), policy.judge(before, arrivals)
        if policy.step(before, arrivals) != after or json.dumps(before.snapshot()) != noted:
            return False
        if verdicts[0].limit != verdicts[1].limit or verdicts[0].held != verdicts[1].held:
            return False
    return True


def _nothing_of_nothing(policy: ProgressPolicy, drawn: Drawn) -> bool:
    if policy.init().punctuation is not None or policy.step(policy.init(), Arrivals.none()) != policy.init():
        return False
    return all(policy.step(after, Arrivals.none()) == after for _, _, after in _states(policy, drawn))


def _closed(policy: ProgressPolicy, drawn: Drawn) -> bool:
    for _, _, after in _states(policy, drawn):
        for time in (_START - 1, int(drawn.rng.integers(_START, _START + 10**9)), _START + 10**15):
            closed = policy.close(after, time).punctuation
            if closed != (time if after.punctuation is None else max(time, after.punctuation)):
                return False
    return True


def _settled(policy: ProgressPolicy, drawn: Drawn) -> bool:
    for _, _, after in _states(policy, drawn):
        verdict, settled = policy.settle(after)
        if settled.held.rows or settled.seen - after.seen + verdict.given_up.rows != after.held.rows:
            return False
    return True


def _told(policy: ProgressPolicy, drawn: Drawn) -> bool:
    states = [policy.init(), *(after for _, _, after in _states(policy, drawn))]
    lines = [policy.explain(state) for state in states]
    figures = [value for state in states for value in policy.figures(state).values()]
    return all(line and "\n" not in line for line in lines) and all(map(_finite, figures))


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _described(policy: ProgressPolicy, drawn: Drawn) -> bool:
    del drawn
    described = policy.describe()
    again = deepcopy(policy)
    return bool(json.loads(json.dumps(described)) == described == again.describe()) and policy == again


def _refuses(policy: ProgressPolicy, drawn: Drawn) -> bool:
    """Each field of a snapshot is left out once; and one is there that no state has."""
    *_, (_, _, after) = _states(policy, drawn)
    whole = after.snapshot()
    wrong: list[dict[str, Any]] = [{}, {**whole, "no such field": 1}, {**whole, "seen": "many"}]
    for snapshot in wrong:
        try:
            policy.restore(snapshot)
        except CheckpointError:
            continue
        return False
    return True


def _bounded(policy: ProgressPolicy, drawn: Drawn) -> bool:
    """The stream goes on as it is: a state that has seen four times as many batches is no larger, but for its digits."""
    length = int(drawn.batches[0].times.max() - drawn.batches[0].times.min()) + drawn.windows.slide
    state, sizes = policy.init(), []
    for number in range(_LONG):
        batch = replace(drawn.batches[0], times=drawn.batches[0].times + number * length)
        state = policy.step(state, drawn.arrivals(batch, state.punctuation))
        if number + 1 in {_LONG // 4, _LONG}:
            sizes.append(_values(state.snapshot()))
    return sizes[1] <= 1.5 * sizes[0] + 32


def _values(snapshot: Any) -> int:
    """Return how many values a JSON value holds."""
    inner: Sequence[Any] = list(snapshot.values()) if isinstance(snapshot, dict) else snapshot
    return 1 + sum(map(_values, inner)) if isinstance(inner, list | tuple) else 1


LAWS: Final[dict[str, Law]] = {
    "the punctuation and the newest time never go back": _never_back,
    "all rows are seen, held or given up, and those whose pane was closed before are dropped": _counted,
    "of rows in order none is late, however they are cut into batches": _in_order_none_late,
    "the order of rows in a batch makes no difference": _order_in_a_batch,
    "a state that went through JSON goes on as if it had not": _restored,
    "equal inputs give equal states, and none is changed": _pure,
    "a batch without rows changes nothing, and before the first row there is no punctuation": _nothing_of_nothing,
    "close() moves the punctuation to its time, and never back": _closed,
    "settle() leaves nothing held, and loses no row": _settled,
    "explain() is one line, and figures() are finite numbers": _told,
    "describe() is a JSON value, the same of a copy": _described,
    "restore() refuses what is no snapshot with a CheckpointError": _refuses,
}
"""What holds for every policy of progress."""
