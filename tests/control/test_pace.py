"""The pauses between batches: cases by hand, and whole streams batch by batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.pace import FEWEST, ROWS, BatchEnd, Pace, PacedBatch, PaceState
from skypane.policy import Decision
from skypane.types import ConfigError

SECOND = 1_000_000

#: rows come 0.5 s after their event time; a batch began each second, and takes 0.2 s; a window ends each second
STEADY = [PacedBatch(at + 0.5, 100, at * SECOND, (at + 1) * SECOND) for at in range(1, 9)]


PACE = Pace()


def state_after(batches: list[PacedBatch], policy: Pace = PACE) -> PaceState:
    return reduce(policy.observe, batches, policy.init())


def decided(batches: list[PacedBatch], now: float, policy: Pace = PACE) -> Decision[float]:
    return policy.decide(state_after(batches, policy), BatchEnd(now))[1]


def test_a_batch_begins_when_the_rows_that_complete_a_window_have_come():
    decision = decided(STEADY, 8.7)
    assert decision.value == pytest.approx(9.5 - 8.7)
    assert decision.because == "the next window can be complete in 800 ms"


def test_rows_are_expected_as_soon_as_in_the_batch_that_was_nearest_to_the_clock():
    sooner = [*STEADY[:3], replace(STEADY[3], newest=4_100_000), *STEADY[4:]]
    assert decided(sooner, 8.7).value == pytest.approx(9.4 - 8.7)


@pytest.mark.parametrize(
    ("batches", "known", "because"),
    [
        ([], BatchEnd(9.0), "0 of 4 batches seen"),
        (STEADY[: FEWEST - 1], BatchEnd(3.7), "3 of 4 batches seen"),
        (STEADY, BatchEnd(8.7, rows_wait=True), "rows wait at the source"),
        ([*STEADY[:-1], replace(STEADY[-1], due=None)], BatchEnd(8.7), "any row may change an answer"),
        (STEADY, BatchEnd(9.495), "the next window can be complete"),
        (STEADY, BatchEnd(99.0), "the next window can be complete"),
        ([*STEADY, PacedBatch(9.5, 1, None, None)], BatchEnd(9.7), "0 of 4 batches seen"),
    ],
)
def test_without_a_reason_to_wait_there_is_no_pause(batches: list[PacedBatch], known: BatchEnd, because: str):
    _, decision = Pace().decide(state_after(batches), known)
    assert (decision.value, decision.because) == (0.0, because)


@pytest.mark.parametrize("speed", [0.0, 0.5, 0.79, 1.21, 2.0, 60.0])
def test_a_stream_that_is_not_as_fast_as_the_clock_has_rows_that_wait(speed: float):
    batches = [replace(one, newest=round(one.began * speed * SECOND), due=10**12) for one in STEADY]
    decision = decided(batches, 8.7)
    assert (decision.value, decision.because) == (0.0, "event time does not keep up with the clock, or is faster")


@pytest.mark.parametrize("longest", [0.0, -1.0, math.nan])
def test_a_longest_pause_is_longer_than_nothing(longest: float):
    with pytest.raises(ConfigError, match="longest must be more than 0 seconds, got "):
        Pace(longest=longest)


def test_batches_at_the_same_time_show_no_speed():
    assert decided([replace(one, began=1.0) for one in STEADY], 8.7).value == 0


def test_a_long_way_to_the_next_window_is_divided_among_batches():
    hour = [replace(one, due=3_600 * SECOND) for one in STEADY]
    decision = decided(hour, 8.7)
    assert 1.5 < decision.value <= 2.0
    assert decision.because == "the next window can be complete in 59.9 min, in 1796 batches"
    assert decided(hour, 8.7, Pace(longest=0.5)).value < 0.5


def test_so_many_rows_do_not_gather():
    dense = [replace(one, rows=4 * ROWS, due=one.due and one.due + 2 * SECOND) for one in STEADY]
    decision = decided(dense, 8.7)
    assert 0 < decision.value <= ROWS / (4 * ROWS)
    denser = [replace(one, rows=400 * ROWS) for one in STEADY]
    assert "too many rows" in decided(denser, 8.7).because


def test_a_batch_that_began_too_early_moves_the_next_ones_back_and_others_bring_them_forward():
    policy = Pace()
    state, _ = policy.decide(state_after(STEADY), BatchEnd(8.7))
    early = PacedBatch(9.5, 100, 8_990_000, 9 * SECOND)
    assert policy.observe(state, early).margin == pytest.approx(0.25 * 0.2)
    met = PacedBatch(9.5, 100, 9 * SECOND, 10 * SECOND)
    assert policy.observe(state, met).margin == pytest.approx(-0.25 * 0.2 / 8)
    not_aimed, _ = policy.decide(state_after(STEADY), BatchEnd(9.7))
    assert policy.observe(not_aimed, early).margin == 0


@given(st.lists(st.booleans(), max_size=200))
def test_the_margin_is_between_a_batch_before_and_half_a_batch_after(met: list[bool]):
    policy, state, now = Pace(), state_after(STEADY), 8
    for one in met:
        state, _ = policy.decide(replace(state, aimed=False), BatchEnd(now + 0.7))
        due = (now + 1) * SECOND
        now += 1
        state = policy.observe(replace(state, aimed=True, due=due), PacedBatch(now + 0.5, 9, due, due + one))
        assert -0.2 - 1e-6 <= state.margin <= 0.1 + 1e-6


@dataclass(frozen=True)
class Stream:
    """A stream of rows, read by batches; times are seconds.

    times    event times, ascending
    there    when each row is there
    batch    mean seconds of a batch, from the listing of rows to the end
    most     rows that a batch reads at most
    """

    times: np.ndarray
    there: np.ndarray
    batch: float = 0.2
    most: int = 10**9

    def run(self, policy: Pace | None) -> Iterator[tuple[float, int, float]]:
        """Yield when each batch has ended, the rows read until then, and the pause after it."""
        state = PACE.init()
        now, read, rng = 0.0, 0, np.random.default_rng(7)
        while read < len(self.times):
            listed, batch = max(now, float(self.there[read])), self.batch * rng.uniform(0.8, 1.2)
            read = min(int(np.searchsorted(self.there, listed, "right")), read + self.most)
            began, now, pause = listed + batch / 4, listed + batch, 0.0
            if policy is not None:
                newest = round(float(self.times[read - 1]) * SECOND)
                due = (newest // SECOND + 1) * SECOND
                state = policy.observe(state, PacedBatch(began, 1, newest, due))
                state, decision = policy.decide(state, BatchEnd(now))
                pause = decision.value
            yield now, read, pause
            now += pause

    def latencies(self, policy: Pace | None) -> tuple[np.ndarray, int]:
        """Return the latency of each window of a second, and the number of batches."""
        ended, read = (np.array(values) for values in list(zip(*self.run(policy), strict=True))[:2])
        completes = np.searchsorted(self.times, np.arange(20, int(self.times[-1])))
        return ended[np.searchsorted(read, completes, "right")] - self.there[completes], len(ended)


@pytest.mark.parametrize("rate", [3, 20, 1_000])
@pytest.mark.parametrize("jitter", [0.0, 0.05])
def test_windows_are_answered_as_soon_as_without_pauses_by_a_third_of_the_batches(rate: int, jitter: float):
    rng = np.random.default_rng(rate)
    times = np.arange(0, 120, 1 / rate) + 1 / rate / 3
    there = np.maximum.accumulate(times + 0.3 + rng.exponential(jitter, len(times)) if jitter else times + 0.3)
    stream = Stream(times, there)
    (paced, fewer), (busy, batches) = stream.latencies(Pace()), stream.latencies(None)
    assert np.median(paced) <= np.median(busy) + (stream.batch / 2 if rate == 3 else 0)
    assert fewer < batches / (2 if rate == 3 else 3)


@pytest.mark.parametrize("most", [1, 7, 50])  # a batch of 0.2 s has 0.1, 0.7 or 5 s of event time
def test_a_backlog_is_read_without_a_pause(most: int):
    times = np.arange(0, 100, 0.1)
    stream = Stream(times, np.zeros(len(times)), most=most)
    assert not any(pause for _, _, pause in stream.run(Pace()))


def test_a_backlog_as_fast_as_the_clock_by_chance_is_seen_after_some_pauses():
    times = np.arange(0, 100, 0.1)
    stream = Stream(times, np.zeros(len(times)), most=2)
    assert 0 < sum(pause for _, _, pause in stream.run(Pace())) < 0.1 * 100
