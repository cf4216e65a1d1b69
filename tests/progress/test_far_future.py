"""Every outcome that far_future.py states."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.progress.streams import in_order_of_arrival, states

from skypane.progress import FutureBound, KSlack, PaneArrivals
from skypane.progress.far_future import FutureDecision, HeldPanes
from skypane.progress.pauses import Pauses
from skypane.snapshots import from_json, to_json
from skypane.windows import Windows

BOUND = FutureBound(max_ahead=100, support=4, patience=20)
DAY = 86_400_000_000
SECOND = 1_000_000


def judge(newest, times, held=None, bound=BOUND):
    return bound.judge(newest, held or HeldPanes(), PaneArrivals.at_once(times, Windows(10, 10)))


def starts(held):
    return [pane.start for pane in held.panes]


@pytest.mark.parametrize(("newest", "times", "limit", "held"), [
    pytest.param(1_000, [990, 1_050], 1_100, [], id="it may lead by max_ahead"),
    pytest.param(1_000, [-10_000, 1_000], 1_100, [], id="rows far in the past are no matter of this bound"),
    pytest.param(1_000, range(1_000, 3_000, 90), 2_980 + 100, [], id="a backlog of days without a gap is accepted"),
    pytest.param(1_000, [1_100, 1_190, 1_310], 1_190 + 100, [1_310], id="a gap ends the chain"),
    pytest.param(1_000, [5_000, 5_001, 5_002, 5_040], 5_140, [], id="the stream moved as a whole"),
    pytest.param(1_000, [5_000] * 4 + [99_000], 5_100, [99_000], id="after a jump a worse clock is still held"),
    pytest.param(None, [10, 9_000, 9_001], 9_101, [], id="a first batch that is mostly bad is accepted"),
])  # fmt: skip
def test_one_batch(newest: int | None, times: Iterable[int], limit: int, held: list[int]):
    verdict = judge(newest, times)
    assert (verdict.limit, starts(verdict.held)) == (limit, held)
    assert verdict == FutureDecision(limit, verdict.held), "nothing was followed or abandoned"


def test_no_bound_no_limit():
    assert judge(None, [5], bound=FutureBound(None)) == FutureDecision(None)


def test_a_pane_leads_by_max_ahead_once_in_however_many_batches_its_rows_come():
    #  5  8         12          16      18
    # -x--x--|10----newest------limit---x-|20
    bound = FutureBound(max_ahead=4, support=100)
    at_once = judge(5, [8, 18, 18], bound=bound)
    held = judge(5, [5, 18], bound=bound).held
    assert starts(held) == [10]
    assert judge(5, [8, 18], held, bound).limit == at_once.limit == 16


def test_a_pane_with_accepted_rows_is_not_held_again():
    """The newest time did not follow the row at 1,200; a held row in its pane would be abandoned together with it."""
    arrivals = PaneArrivals.at_once([1_000, 1_205, 9_000], Windows(10, 10))
    assert starts(BOUND.judge(1_000, HeldPanes(), arrivals, accepted=1_200).held) == [9_000]
    assert starts(BOUND.judge(1_000, HeldPanes(), arrivals).held) == [1_200, 9_000]


def test_one_clock_in_the_future_is_held():
    #     1000        1100 limit              9000
    # -----|-----------|----------------------x----
    verdict = judge(1_000, [1_000, 9_000])
    assert verdict.limit == 1_100
    assert starts(verdict.held) == [9_000]
    assert verdict.abandoned == HeldPanes()


def test_a_stream_that_continues_without_far_rows_quarantines_them():
    held, abandoned = HeldPanes(), []
    for newest in range(1_000, 1_005):
        verdict = judge(newest, [newest + 1] * 6 + [9_000], held)
        held = verdict.held
        abandoned.append(verdict.abandoned.rows)
        assert verdict.limit < 9_000
    # The six rows of the first batch say nothing: 6, 12, 18, and with 24 of 20 the four from before are quarantined.
    assert abandoned == [0, 0, 0, 0, 4]
    assert held.rows == 1, "the last one has not been judged yet"


def test_clocks_of_most_rows_move_nothing_while_the_others_continue():
    held = HeldPanes()
    for newest in range(1_000, 1_050):
        verdict = judge(newest, [newest + 1] + [9_000] * 5, held)
        held = verdict.held
        assert verdict.limit < 9_000


def test_late_rows_do_not_stop_a_stream_that_has_moved_on():
    first = judge(1_000, [5_000] * 3 + [995])
    assert (first.held.ahead, first.held.others) == (3, 1)
    second = judge(1_000, [5_000] * 3 + [995], first.held)
    assert second.limit == 5_100
    assert second.followed.rows == 3
    assert second.held == HeldPanes()


def test_a_pane_longer_than_max_ahead_moves_no_further_than_it():
    verdict = BOUND.judge(1_000, HeldPanes(), PaneArrivals.at_once([1_050, 1_900], Windows(1_000, 1_000)))
    assert verdict.limit == 1_200


def test_the_stream_moved_as_a_whole_a_row_at_a_time():
    held, limits, followed = HeldPanes(), [], 0
    for time in (5_000, 5_010, 5_020, 5_030):
        verdict = judge(1_000, [time], held)
        held = verdict.held
        limits.append(verdict.limit)
        followed += verdict.followed.rows
    assert limits == [1_100, 1_100, 1_100, 5_130]
    assert followed == 3, "those that were held before"


def test_a_batch_across_the_pause_decides_nothing():
    across = judge(1_000, [*range(1_000, 1_060), 5_000, 5_000])
    assert (across.held.rows, across.held.ahead, across.held.against) == (2, 0, 0)
    after = judge(1_059, [5_001] * 4, across.held)
    assert after.limit == 5_101
    assert after.followed.rows == 2


def test_what_the_stream_comes_within_reach_of_is_accepted_without_a_vote():
    first = judge(1_000, [1_000, 1_150])
    second = judge(1_000, [1_060], first.held)
    assert second.held == HeldPanes()
    assert starts(second.followed) == [1_150]
    assert second.limit == 1_250


def test_a_sparse_stream_loses_no_row():
    newest, held, believed = 0, HeldPanes(), 0
    for step in range(1, 41):
        verdict = judge(newest, [step * 1_000], held)
        held = verdict.held
        assert verdict.abandoned == HeldPanes()
        if verdict.followed.panes:
            believed += verdict.followed.rows
            newest = max(pane.newest for pane in verdict.followed.panes)
        elif verdict.limit >= step * 1_000:
            believed, newest = believed + 1, step * 1_000
    assert believed + held.rows == 40


@pytest.mark.long
def test_what_is_held_is_bounded_where_nothing_decides():
    held, most = HeldPanes(), 0
    for _ in range(2_000):
        verdict = judge(1_000, [5_000, 999], held)  # nothing moves, and neither outnumbers the other
        held = verdict.held
        most = max(most, held.rows)
    assert most <= 10 * BOUND.patience


def test_the_first_batch_starts_from_its_lower_median():
    assert judge(None, [10, 20, 30, 9_000, 9_001]).limit == 130
    assert judge(None, [10, 9_000]).limit == 110


def settle(seen, times, pause_after=None, against=0, bound=BOUND):
    """The panes that a drain accepts after 1,000; the longest pause, of 500, came after so many rows."""
    held = replace(HeldPanes.of(PaneArrivals.at_once(times, Windows(10, 10))), against=against)
    verdict = bound.settle(1_000, seen, held, Pauses(((pause_after, 500),) if pause_after else ()))
    assert verdict.held == HeldPanes()
    followed = starts(verdict.followed)
    assert sorted([*followed, *starts(verdict.abandoned)]) == starts(held)
    return followed


def test_at_a_drain_half_of_support_is_enough():
    assert settle(50, [5_000, 5_010]) == [5_000, 5_010]
    assert settle(50, [5_000]) == []
    assert settle(50, [5_000, 25_000]) == [5_000], "that many lie at the first or beyond it, not at the second"


LARGE = FutureBound(max_ahead=100, support=32, patience=20)


@pytest.mark.parametrize(("seen", "times", "known", "accepted"), [
    # Half of a few rows are enough.
    (2, [5_000, 5_010], {"bound": LARGE}, [5_000, 5_010]),
    (3, [5_000, 5_010], {"bound": LARGE}, []),
    # The stream may lead by four times its longest pause, if that came after as many rows as support, or half of a few.
    (50, [3_000], {"pause_after": 4}, [3_000]),
    (50, [3_010], {"pause_after": 4}, []),
    (50, [3_000], {"pause_after": 3}, []),
    (6, [3_000] * 2, {"pause_after": 4, "bound": LARGE}, [3_000]),
    (6, [3_000] * 2, {"pause_after": 3, "bound": LARGE}, []),
    # A pause before rows that speak for themselves counts, here of 4,000; the last two are their own reason.
    (50, [5_000, 5_010, 21_010], {}, [5_000, 5_010, 21_010]),
    (50, [5_000, 5_010, 21_020], {}, [5_000, 5_010]),
    (50, [5_000, 5_010, 90_000, 90_001], {}, [5_000, 5_010, 90_000]),
    # Rows that went on elsewhere are taken off.
    (50, [5_000] * 6, {"against": 4}, [5_000]),
    (50, [5_000] * 6, {"against": 5}, []),
])  # fmt: skip
def test_a_drain_accepts_what_the_stream_has_gone_on_with(seen, times, known, accepted):
    assert settle(seen, times, **known) == accepted


def test_at_a_drain_nothing_is_abandoned_without_a_bound():
    """It may have been taken off while rows were held."""
    assert settle(50, [5_000, 90_000], bound=FutureBound(None)) == [5_000, 90_000]
    verdict = judge(1_000, [1_001], HeldPanes.of(PaneArrivals.at_once([5_000], Windows(10, 10))), FutureBound(None))
    assert verdict.held == HeldPanes()
    assert verdict.followed.rows == 1


times = st.lists(st.integers(0, 400).map(lambda time: time * 10), min_size=1, max_size=20)


@given(times, st.integers(0, 4_000))
def test_a_sorted_batch_or_its_rows_one_by_one_have_one_limit(batch, newest):
    """Where no votes are at stake: each row is within reach of those before it."""
    bound = FutureBound(max_ahead=100, support=1_000, patience=1_000)
    reach, held = newest, HeldPanes()
    for time in sorted(batch):
        verdict = judge(reach, [time], held, bound)
        held = verdict.held
        reach = max(reach, time) if time <= verdict.limit else reach
    whole = judge(newest, batch, bound=bound)
    assert starts(whole.held) == starts(held)
    assert whole.held.rows == held.rows


@given(st.lists(times, max_size=20), st.integers(0, 4_000))
def test_every_row_is_accepted_held_or_abandoned(stream, newest):
    held = HeldPanes()
    for batch in stream:
        arrivals = PaneArrivals.at_once(batch, Windows(10, 10))
        verdict = BOUND.judge(newest, held, arrivals)
        believed = arrivals.upto(verdict.limit).total + verdict.followed.rows
        assert believed + verdict.held.rows + verdict.abandoned.rows == len(batch) + held.rows
        held = verdict.held


@given(st.lists(times, max_size=5))
def test_what_is_held_goes_through_json(stream):
    held = HeldPanes()
    for batch in stream:
        held = judge(0, batch, held).held
        assert from_json(HeldPanes, json.loads(json.dumps(to_json(held)))) == held


BATCHES = [1, 50, 200, 1_000, 5_000, 20_000]


def late_stream(rng):
    """12,000 event times in the order of arrival: ten a second, delayed by a second on average."""
    event = np.cumsum(rng.exponential(SECOND / 10, 12_000))
    return in_order_of_arrival(event, rng.exponential(SECOND, len(event)))


@pytest.mark.long
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("pause", slow_but([400 * DAY], [2 * DAY, 3 * DAY, 400 * DAY]))
def test_a_pausing_stream_has_no_row_quarantined_at_any_batch_size(batch, pause):
    event = late_stream(np.random.default_rng(3))
    event[6_500:] += pause  # in the middle of a batch of 1,000, of 5,000 and of 20,000
    *_, state = states(KSlack(), event, batch)
    assert state.abandoned == 0
    if batch < len(event) // 2:
        assert (state.seen, state.held.rows) == (len(event), 0)
        assert state.newest == event.max()


@pytest.mark.long
@pytest.mark.parametrize(
    ("batch", "wrong"),
    slow_but(
        [(batch, 366 * DAY) for batch in BATCHES] + [(1_000, -366 * DAY)],
        product(BATCHES, (366 * DAY, -366 * DAY)),
    ),
)
def test_one_source_of_a_hundred_with_a_clock_a_year_off_moves_nothing(batch, wrong):
    rng = np.random.default_rng(4)
    event = late_stream(rng)
    bad = rng.integers(0, 100, len(event)) == 0
    without, with_it = event[~bad], np.where(bad, event + wrong, event)
    policy = KSlack(patience=1_000)
    *_, state = states(policy, with_it, batch)
    assert state.newest == without.max()
    if wrong > 0:
        assert state.seen == len(without)
        assert state.held.rows + state.abandoned == bad.sum()
        assert state.slack <= 60 * SECOND
        settled, _ = policy.settle(state)
        assert settled.held == HeldPanes()
        if batch < len(event):
            assert settled.abandoned == bad.sum(), "the stream has gone on without them"
            assert settled.newest == state.newest
        else:
            assert settled.abandoned == 0, "of rows of one batch nobody knows which came first"
