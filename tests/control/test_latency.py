"""The histogram of latencies, and the judgement of a bound, compared with the list of all answers."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.latency import BOUNDS, Latencies
from skypane.control.latency_promise import RECENT, AnsweredBatch, LatencyPromise
from skypane.snapshots import from_json, to_json

STEP = 2 ** (1 / 8)
SECONDS = st.floats(0, 3e6) | st.sampled_from([0.0, 1e-3, BOUNDS[7], BOUNDS[-1], math.nextafter(BOUNDS[-1], math.inf)])
BATCHES = st.lists(st.tuples(SECONDS, st.integers(0, 30)), max_size=12)


def each(batches: list[tuple[float, int]]) -> list[float]:
    """Return the latency of each answer, shortest first."""
    return sorted(seconds for seconds, answers in batches for _ in range(answers))


def added(batches: list[tuple[float, int]]) -> Latencies:
    found = Latencies()
    for seconds, answers in batches:
        found = found.merge(Latencies.of(seconds, answers))
    return found


def rank(share: float, taken: list[float]) -> float:
    """Return the least latency that at least this share of the answers did not exceed."""
    return next(one for one in taken if sum(other <= one for other in taken) >= share * len(taken))


@given(BATCHES, st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_that_of_the_list_or_up_to_a_bucket_more(batches: list[tuple[float, int]], share: float):
    found, taken = added(batches), each(batches)
    assert found.answers == len(taken)
    if not taken:
        assert found.quantile(share) is None
        return
    assert found.longest == taken[-1]
    told, true = found.quantile(share), rank(share, taken)
    assert told is not None
    assert true <= told <= taken[-1]
    if 1e-3 <= true <= BOUNDS[-1]:
        assert told <= true * STEP * (1 + 1e-9)


@given(BATCHES, BATCHES, BATCHES)
def test_histograms_are_merged_in_any_order_and_come_back_from_json(one, other, third):
    parts = [added(batches) for batches in (one, other, third)]
    whole = added([*one, *other, *third])
    assert parts[0].merge(parts[1]).merge(parts[2]) == whole == parts[2].merge(parts[0].merge(parts[1]))
    assert from_json(Latencies, json.loads(json.dumps(to_json(whole)))) == whole


def test_buckets_grow_by_nine_percent_from_a_millisecond_to_twelve_days():
    assert [BOUNDS[at] for at in range(0, len(BOUNDS), 8)] == pytest.approx([1e-3 * 2**at for at in range(31)])
    assert {round(after / before, 9) for before, after in pairwise(BOUNDS)} == {round(STEP, 9)}


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 30)), max_size=2 * RECENT), st.floats(0.1, 20))
def test_a_bound_is_missed_if_more_than_one_answer_in_twenty_of_the_last_batches_took_longer(batches, bound: float):
    promise = LatencyPromise()
    state = promise.init()
    for number, (seconds, answers) in enumerate(batches):
        state = promise.observe(state, AnsweredBatch(float(number), answers, seconds))
    _, judged = promise.decide(state, bound)
    taken = each([one for one in batches if one[1]][-RECENT:])
    assert judged.value == ("missed" if 20 * sum(one > bound for one in taken) > len(taken) else "kept")
    if taken:
        assert judged.figures == {"p95": pytest.approx(rank(0.95, taken)), "promised": bound}


def test_the_reason_has_the_latency_the_bound_and_since_when():
    promise = LatencyPromise()
    began = 1_772_443_807.25  # 2026-03-02 09:30:07.25 UTC
    state = promise.observe(promise.init(), AnsweredBatch(began, 3, 12.3))
    assert promise.decide(state, 5.0)[1].because == (
        "answers took 12.3 s (p95) for the promised 5 s since 2026-03-02 09:30:07 UTC"
    )
    assert promise.decide(promise.init(), 5.0)[1].because == "no answer yet; 5 s promised"
