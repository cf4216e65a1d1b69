from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.alignment import BATCHES, LEAST, TimesAhead, aligned_shares
from skypane.control.admission.sharing import fair_shares

#: the event times of the rows that wait at each input, in order
WAITING = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(-5, 60), min_size=1, max_size=40).map(sorted), min_size=1
)


def exact(waiting: Mapping[str, list[int]]) -> dict[str, TimesAhead]:
    return {name: TimesAhead.of(dict(enumerate(times))) for name, times in waiting.items()}


def lateness(waiting: Mapping[str, list[int]], shares: Mapping[str, int]) -> int | None:
    """How far the newest row that is read lies beyond the oldest one that is left; None if none is left or read."""
    read = [time for name, times in waiting.items() for time in times[: shares[name]]]
    left = [time for name, times in waiting.items() for time in times[shares[name] :]]
    return max(read) - min(left) if read and left else None


def test_inputs_that_are_behind_are_read_up_to_a_common_time_first():
    ahead = {"small": TimesAhead.of({0: 0, 1000: 1000}), "large": TimesAhead.of({0: 0, 1000: 500})}
    assert aligned_shares({"small": 5000, "large": 10_000}, ahead, 300) == {"small": 100, "large": 200}
    ahead["small"] = TimesAhead.of({0: 100, 1000: 1100})
    assert aligned_shares({"small": 5000, "large": 10_000}, ahead, 150) == {"small": 0, "large": 150}


def test_an_input_that_is_not_reached_within_many_batches_gets_a_least_share():
    reached = 99 + 99 * BATCHES  # a batch of 100 rows reads the rows 0 to 99 of the first input
    ahead = {"hot": TimesAhead.of({0: 0, 100: 100}), "ahead": TimesAhead.of({0: reached})}
    wanted = {"hot": 10**6, "ahead": 10**6}
    assert aligned_shares(wanted, ahead, 100) == {"hot": 100, "ahead": 0}
    ahead["ahead"] = TimesAhead.of({0: reached + 1})
    assert aligned_shares(wanted, ahead, 100) == {"hot": 100 - 100 // LEAST, "ahead": 100 // LEAST}


def test_inputs_that_are_level_share_fairly():
    same = TimesAhead.of({0: 7})
    wanted = {"hot": 1000, "a": 3, "b": 10}
    assert aligned_shares(wanted, dict.fromkeys(wanted, same), 21) == fair_shares(wanted, 21)


@given(
    waiting=WAITING, budget=st.integers(0, 150), turn=st.integers(0, 200), unknown=st.sets(st.sampled_from("abcdef"))
)
def test_the_whole_budget_is_used_and_no_request_exceeded(
    waiting: dict[str, list[int]], budget: int, turn: int, unknown: set[str]
):
    wanted = {name: len(times) for name, times in waiting.items()}
    ahead = exact({name: times for name, times in waiting.items() if name not in unknown})
    shares = aligned_shares(wanted, ahead, budget, turn)
    assert sum(shares.values()) == min(budget, sum(wanted.values()))
    assert all(0 <= shares[name] <= wanted[name] for name in wanted)
    fair = fair_shares(wanted, budget, turn)
    assert all(shares[name] == fair[name] for name in wanted if name in unknown)


@given(waiting=WAITING, more=st.integers(0, 100), turn=st.integers(0, 200))
def test_rows_left_are_no_further_behind_than_with_max_min_shares(waiting: dict[str, list[int]], more: int, turn: int):
    wanted = {name: len(times) for name, times in waiting.items()}
    budget = len(wanted) + more
    aligned = lateness(waiting, aligned_shares(wanted, exact(waiting), budget, turn))
    fair = lateness(waiting, fair_shares(wanted, budget, turn))
    assert (aligned is None) == (fair is None)
    assert aligned is None or fair is None or aligned <= max(fair, 0)


@given(waiting=WAITING, budget=st.integers(1, 150), turn=st.integers(0, 200), order=st.randoms())
def test_the_order_of_the_inputs_changes_nothing(waiting, budget: int, turn: int, order):
    wanted, ahead = {name: len(times) for name, times in waiting.items()}, exact(waiting)
    names = list(wanted)
    order.shuffle(names)
    again = aligned_shares({name: wanted[name] for name in names}, {name: ahead[name] for name in names}, budget, turn)
    assert again == aligned_shares(wanted, ahead, budget, turn)


@given(ahead=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8), budget=st.integers(1, 30))
def test_no_input_starves_whatever_its_clock_shows(ahead: list[int], budget: int):
    """The first always has rows, all of one time; each of the others gets a row within LEAST rows per input."""
    clocks = {str(at): TimesAhead.of({0: time}) for at, time in enumerate([-(10**9), *ahead])}
    wanted = dict.fromkeys(clocks, 10**6)
    got: set[str] = set()
    turn = 0
    while turn < LEAST * len(clocks) + budget:
        got |= {name for name, share in aligned_shares(wanted, clocks, budget, turn).items() if share}
        turn += budget
    assert got == set(clocks)


def test_estimates_are_extended_to_the_first_and_the_last_row():
    ahead = TimesAhead.of({10: 100, 20: 200, 30: 210})
    assert ahead.extended(41) == TimesAhead((0, 10, 20, 30, 40), (0, 100, 200, 210, 220))
    assert ahead.extended(31) == TimesAhead((0, 10, 20, 30), (0, 100, 200, 210))
    assert TimesAhead.of({10: 100}).extended(41) == TimesAhead((0,), (100,))
    assert [ahead.extended(41).at(row) for row in (0, 5, 20, 25, 40, 41)] == [0, 50, 200, 205, 220, 220]


@given(
    estimates=st.dictionaries(st.integers(1, 50), st.integers(0, 1000), max_size=5),
    first=st.integers(0, 1000),
    time=st.integers(-10, 1010),
)
def test_rows_up_to_a_time_follow_the_line_between_the_estimates(estimates: dict[int, int], first: int, time: int):
    ahead = TimesAhead.of({0: first, **estimates})
    count = ahead.until(time)
    later = ahead.until(time + 1)
    assert later is None or (count is not None and later >= count)
    assert (count is None) == (time >= ahead.times[-1])
    assert (count == 0) == (time < ahead.times[0])
    for row, at in zip(ahead.rows, ahead.times, strict=True):
        assert count is None or (row < count) == (at <= time)
