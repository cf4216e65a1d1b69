"""Admission as a policy: what it remembers, what it decides, and what it says of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission import STRATEGIES, Admission, AdmissionState, MetaData, PeriodObservation
from skypane.types import CheckpointError, ConfigError

NOTHING = MetaData()


def streams(*names: str) -> dict[str, MetaData]:
    return dict.fromkeys(names, NOTHING)


def after(policy: Admission, known: dict[str, MetaData], *periods: dict[str, float]) -> AdmissionState:
    """The state after these periods, decided in each of them."""
    state, _ = policy.decide(policy.init(), known)
    for rates in periods:
        state, _ = policy.decide(policy.observe(state, PeriodObservation(rates)), known)
    return state


def readers(state: AdmissionState) -> dict[int, tuple[str, ...]]:
    return {reader.number: reader.streams for reader in state.readers}


def test_streams_are_packed_into_as_few_readers_as_bear_them():
    policy = Admission(capacity=10, strategy="ARD")
    state = after(policy, streams("a", "b", "c"), {"a": 6.0, "b": 6.0, "c": 4.0})
    assert sorted(map(len, readers(state).values())) == [1, 2]


def test_new_streams_count_for_the_average_of_those_that_are_there():
    policy = Admission(capacity=10)
    state = after(policy, streams("a", "b"), {"a": 6.0, "b": 2.0})
    known = streams("a", "b", "new")
    assert policy.streams(state.profiles, known)["new"].average == pytest.approx(4.0)
    assert policy.streams(state.profiles, {**known, "new": MetaData(average=7)})["new"].average == 7
    assert policy.streams(state.profiles, {**known, "new": MetaData(max=9)})["new"].expected == 9


def test_the_headroom_of_a_capacity_stays_free():
    """Of 10 rows/s 8: three streams of 3 rows/s are too many for one reader, and two are not."""
    policy = Admission(capacity=10, headroom=0.2)
    assert sorted(map(len, readers(after(policy, streams(*"abc"), dict.fromkeys("abc", 3.0))).values())) == [1, 2]


def test_a_first_stream_of_which_nothing_is_known_counts_for_a_share_of_a_reader():
    assert Admission(capacity=50, unknown=0.2).streams((), streams("new"))["new"].average == 10


def test_a_stream_that_is_not_named_any_more_leaves_with_its_history():
    policy = Admission(capacity=10)
    state = after(policy, streams("a", "b"), {"a": 6.0, "b": 2.0})
    state, decision = policy.decide(state, streams("b"))
    assert [profile.name for profile in state.profiles] == ["b"]
    assert decision.value.readers == {1: ("b",)}
    state, decision = policy.decide(state, {})
    assert decision.value.readers == {}


def test_a_silent_stream_keeps_its_place():
    policy = Admission(capacity=10)
    state = after(policy, streams("a", "b"), {"a": 6.0, "b": 2.0}, {"a": 6.0}, {"a": 6.0})
    assert readers(state) == {1: ("a", "b")}
    assert state.profiles[1].rates == (2.0, 0.0, 0.0)


def test_meta_data_moves_a_stream_before_its_rate_does():
    """b jumps from 1 to 8 after 30 s of silence: DRF-M has a reader for it before, DRF when it has happened."""
    jumps = MetaData(min=1, max=8, transition="jump", low_period="30 s", high_period="30 s")
    known = {"a": NOTHING, "b": jumps}
    low, high = {"a": 5.0, "b": 1.0}, {"a": 5.0, "b": 8.0}
    counts: dict[str, list[int]] = {}
    for strategy in ("DRF", "DRF-M"):
        policy = Admission(capacity=10, ahead=1, strategy=strategy)
        state = after(policy, known, low)
        counts[strategy] = []
        for rates in (high, low, low, low, high):
            state, decision = policy.decide(policy.observe(state, PeriodObservation(rates)), known)
            counts[strategy].append(len(decision.value.redirected))
    assert counts == {"DRF": [1, 0, 0, 0, 0], "DRF-M": [0, 0, 0, 0, 0]}


def test_queues_are_smoothed_and_their_latency_is_an_overload():
    policy = Admission(capacity=10, latency="2 s", smoothing=0.5)
    state = after(policy, streams("a", "b"), {"a": 4.0, "b": 4.0})
    for queued in (30.0, 30.0):
        state = policy.observe(state, PeriodObservation({"a": 4.0, "b": 4.0}, {1: queued}))
    assert state.readers[0].waiting == 22.5
    _, decision = policy.decide(state, streams("a", "b"))
    assert "rows wait 2.2 s" in decision.because
    assert decision.figures["overloaded"] == 1


def test_a_number_of_readers_without_a_capacity_is_an_even_share():
    policy = Admission(max_readers=2)
    names = [f"s{at:02}" for at in range(20)]
    rates = {name: float(1 + at % 5) for at, name in enumerate(names)}
    state = after(policy, streams(*names), *[rates] * 3)
    loads = [sum(rates[name] for name in names) for names in readers(state).values()]
    assert len(loads) == 2
    assert max(loads) <= 1.07 * sum(loads) / 2


def test_readers_are_given_back_one_at_a_time():
    policy = Admission(capacity=10, give_back=0.7)
    state = after(policy, streams("a", "b", "c"), {"a": 9.0, "b": 9.0, "c": 9.0})
    assert len(state.readers) == 3
    calm = {"a": 1.0, "b": 1.0, "c": 1.0}
    counts = []
    for _ in range(30):
        state, decision = policy.decide(policy.observe(state, PeriodObservation(calm)), streams("a", "b", "c"))
        counts.append(len(decision.value.readers))
    assert counts[-1] == 1
    assert all(before - now <= 1 for before, now in zip([3, *counts], counts, strict=False))


def test_a_decision_names_overloaded_readers_and_moved_streams():
    policy = Admission(capacity=10, strategy="ARD")
    state = after(policy, streams("a", "b", "c"), {"a": 4.0, "b": 3.0, "c": 3.0})
    state = policy.observe(state, PeriodObservation({"a": 6.0, "b": 3.0, "c": 3.0}))
    _, decision = policy.decide(state, streams("a", "b", "c"))
    assert decision.because == "ARD: reader 1 at 12 of 10 rows/s; a from 1 to 2; added 2"
    assert json.loads(json.dumps(decision.to_json()))["value"]["readers"] == {"1": ["b", "c"], "2": ["a"]}
    assert decision.figures["fewest readers"] == 2


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(periods=st.lists(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 20)), max_size=4))
def test_a_snapshot_in_between_changes_nothing(strategy: str, periods: list[dict[str, float]]):
    policy = Admission(capacity=10, strategy=strategy, give_back=0.5)
    straight = restored = policy.init()
    for rates in periods:
        known = streams(*rates)
        straight, one = policy.decide(policy.observe(straight, PeriodObservation(rates)), known)
        restored = policy.restore(json.loads(json.dumps(policy.snapshot(restored))))
        restored, other = policy.decide(policy.observe(restored, PeriodObservation(rates)), known)
        assert one == other
        assert sorted(name for names in one.value.readers.values() for name in names) == sorted(known)


def test_an_invalid_snapshot_is_refused():
    with pytest.raises(CheckpointError, match="AdmissionState in the checkpoint"):
        Admission(max_readers=2).restore({"readers": []})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strategy": "BFD"}, "strategy must be one of PAR, ARI, ARD, DRF, DRF-M, got 'BFD'"),
        ({"capacity": None}, "need capacity, the rows per second that one reader reads, or max_readers"),
        ({"every": "0 s"}, "every must be longer than 0"),
        ({"ahead": 0}, "ahead counts periods, need at least 1, got 0"),
        ({"headroom": 1}, "headroom is a share of the capacity, need 0 <= headroom < 1, got 1"),
        ({"smoothing": 0}, "smoothing is a weight"),
        ({"capacity": -5}, "capacity is in rows per second of a reader"),
    ],
)
def test_an_invalid_policy_is_refused(wrong, message: str):
    with pytest.raises(ConfigError, match=message):
        Admission(**{"capacity": 10, **wrong})


def test_invalid_rates_are_refused():
    with pytest.raises(ConfigError, match="rate of a must be finite and not negative, got nan"):
        PeriodObservation({"a": float("nan")})
    with pytest.raises(ConfigError, match="queue of reader 1 must be finite and not negative, got -1"):
        PeriodObservation({}, {1: -1})
