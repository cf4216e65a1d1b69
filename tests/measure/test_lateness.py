from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from measure.latency.lateness import Batches, LateStream, run, run_tuple_grain, window_times

from skypane.progress import KSlack, Watermark
from skypane.windows import Windows


def stream(pairs):
    event, arrival = np.array(pairs, np.int64).reshape(-1, 2).T
    return LateStream.of(event, arrival)


def test_worked_by_hand():
    # arrival  0         10         20         30         40
    # batch    |---- 0 ---|--- 1 ----|--- 2 ----|--- 3 ----|
    # event     1  4       12   3     9  25               41
    tuples = stream([(1, 1), (4, 4), (12, 12), (3, 15), (9, 20), (25, 29), (41, 39)])
    batches = Batches.of(tuples, Windows(10, 10), every=10)
    trace = run(Watermark("5 us"), batches)
    assert trace.clock.tolist() == [10, 20, 30, 40]
    assert trace.punctuation.tolist() == [-1, 7, 20, 36]
    assert trace.seen.tolist() == [2, 4, 6, 7]
    assert trace.dropped.tolist() == [0, 0, 0, 0]
    times = window_times(tuples, batches.windows, trace)
    assert times.end.tolist() == [10, 20, 30]
    assert times.latency.tolist() == [30 - 1, 30 - 12, 40 - 29]
    assert times.past_end.tolist() == [20, 10, 10]


def test_intervals_without_rows_are_not_batches():
    batches = Batches.of(stream([(1, 1), (2, 95)]), Windows(10, 10), every=10)
    assert batches.clock.tolist() == [10, 100]
    assert batches.step.tolist() == [0, 1]


def test_a_window_whose_tuples_were_all_dropped_does_not_exist():
    tuples = stream([(5, 5), (35, 15), (12, 25), (55, 35)])
    batches = Batches.of(tuples, Windows(10, 10), every=10)
    trace = run(Watermark("0 us"), batches)
    assert trace.dropped.tolist() == [0, 0, 1, 1]
    assert trace.drop_ratio_after(2) == 1 / 2
    assert trace.worst_drop_ratio(1) == 1 / 3
    assert window_times(tuples, batches.windows, trace).end.tolist() == [10, 40]


def test_tuple_grain_closes_when_the_tuple_arrives():
    tuples = stream([(1, 1), (4, 4), (12, 12), (3, 15), (25, 29), (39, 39), (52, 52)])
    trace = run_tuple_grain(tuples, Windows(10, 10))
    assert trace.punctuation.tolist() == [1, 4, 12, 12, 12, 17, 30]  # K is 22 from 25 on, which sees 3 behind it
    assert trace.dropped.tolist() == [0, 0, 0, 1, 1, 1, 1]
    times = window_times(tuples, Windows(10, 10), trace)
    assert times.end.tolist() == [10, 20, 30]
    assert times.latency.tolist() == [12 - 1, 52 - 12, 52 - 29]


def expected_windows(tuples, windows, punctuations, clock, step):
    """Row by row: admit what is not closed, answer each window as soon as it is."""
    first: dict[int, int] = {}
    done: list[tuple[int, int]] = []
    closed, row = None, 0
    for number, punctuation in enumerate(punctuations):
        while row < len(tuples.event) and step[row] == number:
            pane = windows.panes_at(int(tuples.event[row]))
            if closed is None or windows.pane_end(pane) > closed:
                for window in windows.windows_of(pane):
                    first.setdefault(window, int(tuples.arrival[row]))
            row += 1
        for window in sorted(first):
            end = windows.bounds(window)[1]
            if end <= punctuation and (closed is None or end > closed):
                done.append((end, int(clock[number]) - first[window]))
        closed = punctuation
    return done


pairs = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), min_size=1, max_size=60)


@given(pairs, st.sampled_from([(10, 10), (30, 10), (20, 5), (15, 10)]), st.sampled_from([1, 7, 25]))
def test_window_times_are_those_of_the_rows(drawn, shape, every):
    tuples = stream([(event, event + delay) for event, delay in drawn])
    batches = Batches.of(tuples, Windows(*shape), every)
    for trace in (run(KSlack(), batches), run_tuple_grain(tuples, batches.windows)):
        times = window_times(tuples, batches.windows, trace)
        found = list(zip(times.end.tolist(), times.latency.tolist(), strict=True))
        assert found == expected_windows(tuples, batches.windows, trace.punctuation, trace.clock, trace.step)
