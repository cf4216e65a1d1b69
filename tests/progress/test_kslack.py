from __future__ import annotations

from hypothesis import given
from tests.progress.streams import PANE, batches, steps

from skypane.progress import KSlack, PaneArrivals
from skypane.progress.kslack import tuple_grain
from skypane.windows import Windows


def test_worked_by_hand():
    # tmax before:   -              1012           1030           1030
    stream = [[1_000, 1_012], [1_030, 1_001], [1_025, 990], [1_050]]
    # delays:        none          11             5, 40          none
    states = steps(KSlack(), stream)
    assert [state.slack for state in states] == [0, 11, 40, 40]
    assert [state.punctuation for state in states] == [1_012, 1_019, 1_019, 1_019]
    assert [state.dropped for state in states] == [0, 1, 2, 2]  # 1001 and 990


def test_a_tuple_from_1970_leaves_k_alone():
    states = steps(KSlack(max_slack="100 us"), [[5_000], [5_010, 3], [5_020, 4_990]])
    assert [state.slack for state in states] == [0, 0, 20]
    assert states[1].dropped == 1


def test_a_pane_across_max_slack_counts_as_max_slack():
    policy = KSlack(max_slack="100 us")
    state = policy.decide(policy.init(), PaneArrivals.at_once([1_000], Windows(50, 50)))[0]
    state = policy.decide(state, PaneArrivals.at_once([860, 899, 990], Windows(50, 50)))[0]
    assert state.slack == 10  # both of [850, 900) are too old
    state = policy.decide(state, PaneArrivals.at_once([895, 945], Windows(100, 100)))[0]
    assert state.slack == 55
    state = policy.decide(state, PaneArrivals.at_once([895, 930], Windows(50, 50, -5)))[0]
    assert state.slack == 100


def test_without_max_slack_everything_is_waited_for():
    assert steps(KSlack(max_slack=None), [[5_000], [3]])[-1].slack == 4_997


@given(batches())
def test_is_the_definition_row_by_row(stream):
    tmax, slack, punctuation, dropped = None, 0, None, 0
    for state, times in zip(steps(KSlack(max_ahead=None), stream), stream, strict=True):
        for time in times:
            slack = max(slack, 0 if tmax is None else tmax - time)
            dropped += punctuation is not None and (time // PANE + 1) * PANE <= punctuation
        tmax = max(times) if tmax is None else max(tmax, *times)
        punctuation = tmax - slack if punctuation is None else max(punctuation, tmax - slack)
        assert (state.newest, state.slack, state.punctuation, state.dropped) == (tmax, slack, punctuation, dropped)


@given(batches())
def test_never_drops_a_delay_seen_before_once_the_punctuation_is_that_far_behind(stream):
    policy = KSlack()
    before = policy.init()
    for state, times in zip(steps(policy, stream), stream, strict=True):
        if before.newest is not None and before.punctuation == before.newest - before.slack:
            unseen = [time for time in times if before.newest - time > before.slack]
            assert state.dropped - before.dropped <= len(unseen)
        before = state


def test_tuple_grain_worked_by_hand():
    # time         10  12   9  11  15  16  14  24  13  23  26
    # tmax         10  12  12  12  15  16  16  24  24  24  26
    # delays                     6, 4           10      13, 3  of those since tmax moved last, against where it is now
    # K             0   0   0   0   6   6   6  10  10  10  13
    # tmax - K     10  12           9  10      14          13  given only if it is progress
    times = [10, 12, 9, 11, 15, 16, 14, 24, 13, 23, 26]
    assert list(tuple_grain(times)) == [10, 12, 12, 12, 12, 12, 12, 14, 14, 14, 14]


def emitter(times):
    """Paper 1, section 4.1.1, word for word: the punctuation in force after each tuple."""
    k, tmax, last = 0, None, None
    since: list[int] = []
    given: list[int | None] = []
    for ts in times:
        if tmax is None or ts > tmax:
            tmax = ts
            k = max([k, *(tmax - ti for ti in since)])  # "for all the tuples received since the last update of tmax"
            since = []
            tp = tmax - k
            if last is None or tp > last:  # "only if it is a real stream progress"
                last = tp
        else:
            since.append(ts)
        given.append(last)
    return given


@given(batches())
def test_tuple_grain_is_the_papers(stream):
    times = [time for batch in stream for time in batch]
    assert list(tuple_grain(times)) == emitter(times)
