from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parameters import examples
from tests.progress.streams import heavy_tailed

from skypane.progress import AqKSlack, KSlack, PaneArrivals, Watermark
from skypane.progress.policy_yardstick import BatchedStream, PolicyRun, best_fixed, measure, window_ends
from skypane.types import ConfigError, Length
from skypane.windows import Windows

SECOND = 1_000_000
SHAPES = st.sampled_from([Windows(10, 10), Windows(30, 10), Windows(15, 10), Windows(20, 5, 3)])
TIMES = st.lists(st.integers(0, 400), min_size=1, max_size=80).map(lambda times: np.array(times, np.int64))


def after(delay):
    return Watermark(Length(delay), max_ahead=None)


@given(TIMES, SHAPES, st.integers(1, 30))
def test_a_cut_stream_is_its_batches(event, windows, batch):
    cut = BatchedStream.of(event, windows, batch)
    parts = [event[at : at + batch] for at in range(0, len(event), batch)]
    assert len(cut.arrivals) == len(parts)
    for arrivals, part in zip(cut.arrivals, parts, strict=True):
        expected = PaneArrivals.of_times(part, windows)
        for name in ("pane_start", "pane_end", "rows", "oldest", "newest"):
            assert getattr(arrivals, name).tolist() == getattr(expected, name).tolist()


@given(TIMES, SHAPES, st.integers(1, 30), st.integers(0, 200))
def test_a_fixed_delay_is_the_watermark(event, windows, batch, delay):
    cut = BatchedStream.of(event, windows, batch)
    run = PolicyRun.of(after(delay), cut)
    fixed = PolicyRun.fixed(delay, run, cut)
    assert fixed.punctuation.tolist() == run.punctuation.tolist()
    assert fixed.dropped.tolist() == run.dropped.tolist()


@given(TIMES, SHAPES, st.integers(1, 30), st.integers(0, 200))
def test_the_best_fixed_delay_drops_no_more_and_a_shorter_one_does(event, windows, batch, delay):
    cut = BatchedStream.of(event, windows, batch)
    run = PolicyRun.of(after(delay), cut)
    best = best_fixed(cut, run, 0)
    assert best <= delay
    assert PolicyRun.fixed(best, run, cut).dropped[-1] <= run.dropped[-1]
    if best:
        assert PolicyRun.fixed(best - 1, run, cut).dropped[-1] > run.dropped[-1]


@given(TIMES, SHAPES)
def test_the_windows_are_those_with_rows(event, windows):
    ends = {windows.bounds(k)[1] for time in event.tolist() for k in windows.windows_of(windows.pane_at(time))}
    assert window_ends(event, windows).tolist() == sorted(ends)


def test_worked_by_hand():
    # batches       [1, 5]  [12, 25]  [21, 38]  [40, 61]    punctuation  0   20   33   56
    event = np.array([1, 5, 12, 25, 21, 38, 40, 61])
    windows = Windows(10, 10)
    run = PolicyRun.of(after(5), BatchedStream.of(event, windows, 2))
    assert run.punctuation.tolist() == [0, 20, 33, 56]
    ends = window_ends(event, windows)
    assert ends.tolist() == [10, 20, 30, 40, 50, 70]
    latency, done = run.answered(ends)
    assert latency[done].tolist() == [15, 5, 8, 21, 11]
    assert run.first(ends) == 25 - 5
    assert run.silence(ends) == 0, (
        "there is an answer with every batch from the second on, and with the first none is due"
    )


def test_silence_lasts_to_the_batch_before_the_next_answer():
    event = np.array([0, 10, 12, 14, 19, 31])
    run = PolicyRun.of(after(5), BatchedStream.of(event, Windows(10, 10), 1))
    # answers: with 19 (to 10), and with 31 (to 20)
    assert run.silence(window_ends(event, Windows(10, 10))) == 14


def test_excess_is_looked_for_in_every_stretch():
    event = np.concatenate([np.arange(30_000) * 10 + 1_000_000, np.full(500, 5), np.arange(30_000) * 10 + 1_300_000])
    run = PolicyRun.of(after(0), BatchedStream.of(event, Windows(10, 10), 100))
    assert run.dropped[-1] >= 500
    assert run.worst_excess(0.01) == pytest.approx(500 - 0.01 * 10_000, abs=2)


@pytest.mark.long
@settings(max_examples=examples(1 / 3))
@given(st.integers(0, 2**32 - 1))
def test_aqkslack_on_its_yardstick(seed):
    event = heavy_tailed(60_000, shape=2.0, scale=0.2, rng=np.random.default_rng(seed))
    found = measure(event, Windows.of("1 second", "500 ms"), 200, AqKSlack(0.02))
    mean, p99 = found.ratios
    assert found.judged
    assert mean <= 1.08
    assert p99 <= 1.2
    assert found.chosen <= found.budget
    assert found.held <= found.longest
    assert found.tested.first is not None
    assert found.kslack.first is not None
    assert found.tested.first <= found.kslack.first
    assert found.tested.mean < found.kslack.mean


def test_a_stream_too_short_for_its_budget_is_not_judged():
    event = heavy_tailed(5_000, shape=2.0, scale=0.2, rng=np.random.default_rng(1))
    assert not measure(event, Windows.of("1 second"), 200, AqKSlack(0.001)).judged


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ConfigError, match="KSlack"):
        measure(np.array([1]), Windows(10, 10), 5, KSlack())
    with pytest.raises(ConfigError, match="batch"):
        measure(np.array([1]), Windows(10, 10), 0, AqKSlack(0.1))
