"""Cells of the yardstick that say most; `python -m measure.yardstick.cells` measures them all."""

from __future__ import annotations

import numpy as np
import pytest
from measure.yardstick import amended, begin, catching_up, streams
from measure.yardstick import cells as yardstick
from measure.yardstick.clocks import scored

from skypane.progress import AqKSlack, Watermark
from skypane.progress.clock_offsets import CLOCKS
from skypane.progress.policy_yardstick import BatchedStream, PolicyRun, measure, window_ends
from skypane.windows import Windows

FEW = 1_000


def test_what_a_pause_costs_beyond_hindsight_is_chance():
    """A window that is open when a stream pauses waits for days, so one more or less decides a mean: many do not."""
    places = range(30_077, 80_000, 4_011)
    paused = [streams.paused(place) for place in places]
    found = [measure(stream.event, stream.windows[0], FEW, AqKSlack(0.05)).ratios[0] for stream in paused]
    assert np.mean(found) <= 1.08


@pytest.mark.parametrize("window", ["10 minutes", "1 hour"])
def test_flights_keep_a_budget_of_a_thousandth_in_batches_of_days(window: str):
    flights = streams.flights()
    found = measure(flights.event, Windows.of(window), 5_000, AqKSlack(0.001))
    assert found.judged
    assert found.chosen <= found.budget


#: In large batches the newest time follows so many clocks, unless the sources are known, and rows are lost until the slack has grown.
MANY_CLOCKS = "three clocks of ten an hour ahead"
#: A tenth of the rows come a day late, and the budget is a hundredth: from the second upload on, all windows wait for it.
UPLOADS = "one source of ten uploads at night"


@pytest.mark.parametrize("batch", [200, 1_000])
def test_three_clocks_of_ten_cost_nothing_if_the_sources_are_known(batch: int):
    stream = streams.disagreeing(MANY_CLOCKS)
    found = measure(stream.event, stream.windows[0], batch, AqKSlack(0.01), stream.arrival, stream.source)
    mean, p99 = found.ratios
    assert mean <= 1.2
    assert p99 <= 1.5
    assert found.dropped <= found.budget / 5


def test_a_clock_that_is_corrected_delays_no_window_and_its_rows_are_in_the_right_one():
    stream = streams.disagreeing("one clock of 50 two hours behind")
    accepted, aligned, without = (scored(stream, FEW, AqKSlack(0.01, clocks=clocks)) for clocks in CLOCKS)
    assert accepted.wrong > 0.019
    assert max(aligned.wrong, without.wrong) < 0.002
    assert (accepted.kept_out, aligned.kept_out) == (0, 0)
    assert without.kept_out > 0.017
    assert max(aligned.latency, without.latency) < accepted.latency / 10


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in streams.DISAGREEING if name not in {MANY_CLOCKS, UPLOADS}])
def test_sources_that_disagree_cost_what_the_best_fixed_delay_costs_them(name: str):
    stream = streams.disagreeing(name)
    found = measure(stream.event, stream.windows[0], 200, AqKSlack(0.01), stream.arrival)
    mean, p99 = found.ratios
    assert mean <= 1.2
    assert p99 <= 1.5
    assert found.dropped - found.unavoidable <= found.budget


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in streams.DISAGREEING if name != MANY_CLOCKS])
def test_no_fixed_delay_of_a_watermark_drops_fewer_rows_and_answers_as_soon(name: str):
    stream = streams.disagreeing(name)
    cut = BatchedStream.of(stream.event, stream.windows[0], 200, stream.arrival)
    ends = window_ends(stream.event, stream.windows[0])
    ours = PolicyRun.of(AqKSlack(0.01), cut)
    latency, done = ours.answered(ends)
    judged = done & (ends > ours.clock[0] + streams.HOUR)  # before it, the policy learns how late rows are
    for delay in (1, 10, 30, 60, 300, 3_590, 3_610, 3_660, 7_190, 7_210, 7_260, 86_400):
        theirs = PolicyRun.of(Watermark(f"{delay} seconds"), cut)
        other, other_done = theirs.answered(ends)
        other = np.where(other_done, other, np.inf)
        if theirs.dropped[-1] < ours.dropped[-1]:
            assert other[judged].mean() > latency[judged].mean(), f"a delay of {delay} s"


def test_the_first_of_ten_uploads_is_lost_and_the_third_is_waited_for():
    stream = streams.disagreeing(UPLOADS)
    cut = BatchedStream.of(stream.event, stream.windows[0], 200, stream.arrival)
    run = PolicyRun.of(AqKSlack(0.01), cut)
    days = np.searchsorted(run.clock, streams.START + streams.DAY * np.arange(1, 4) + streams.HOUR)
    lost = np.diff(run.dropped[[*days, -1]])
    assert run.dropped[days[0]] > 15_000
    assert lost[0] > 15_000
    assert (lost[1:] < 1_000).all()


def test_the_tables_have_a_row_for_each_window_and_batch():
    stream = streams.paused(50_077)
    cells = {
        (stream.windows[1], batch, 0.01): measure(stream.event, stream.windows[1], batch, AqKSlack(0.01))
        for batch in (200, FEW)
    }
    steady = [(stream, cells)]
    assert "2 cells; 2 of streams without a change, 2 of them" in yardstick.summary(steady)
    (row,) = yardstick.others(stream, cells)
    assert row.count("|") == 14


@pytest.mark.parametrize("windows", [Windows.of("2 seconds"), Windows.of("10 seconds", "3 seconds")])
def test_the_best_fixed_delay_is_the_smallest_that_amends_no_more_windows(windows: Windows):
    rng = np.random.default_rng(4)
    sent = np.cumsum(rng.exponential(200_000, 3_000))
    event = sent[np.argsort(sent + rng.exponential(2_000_000, len(sent)), kind="stable")].astype(np.int64)
    stream = amended.AmendedStream.of(streams.Stream("made", event, (windows,)), windows, 20)
    run = PolicyRun.of(AqKSlack(max_amended=0.2), stream.cut)
    late = set()
    for number, punctuation in enumerate(run.punctuation[:-1].tolist(), 1):
        for time in event[20 * number : 20 * number + 20].tolist():
            ends = (windows.bounds(window)[1] for window in windows.windows_of(windows.pane_at(time)))
            late |= {end for end in ends if end <= punctuation}
    assert stream.ends[stream.amended(run.punctuation)].tolist() == sorted(late)

    def fixed(delay: int) -> int:
        punctuation = PolicyRun.fixed(delay, run, stream.cut).punctuation
        return int(stream.amended(punctuation)[stream.judged].sum())

    for most in (0, 1, 5, 30):
        delay = stream.best_fixed(run, most)
        assert fixed(delay) <= most < fixed(delay - 1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["exponential", "Pareto, tail 1.2", "flights"])
def test_a_budget_of_amended_windows_costs_what_the_best_fixed_delay_costs(name: str):
    (stream,) = [stream for stream in streams.streams() if stream.name == name]
    cut = amended.AmendedStream.of(stream, amended.WINDOWS[name], 200)
    for budget in (0.05, 0.2):
        found = cut.compared(AqKSlack(max_amended=budget))
        mean, p99 = found.ratios
        assert mean <= 1.08
        assert p99 <= 1.3
        assert 0.5 * budget < found.tested.amended <= budget


def test_the_table_of_amended_windows_has_a_row_for_each_policy():
    stream = streams.flights()
    cut = amended.AmendedStream.of(stream, amended.WINDOWS["flights"], 5_000)
    cells = [cut.compared(policy) for policy in amended.POLICIES.values()]
    lines = amended.table([(stream, amended.WINDOWS["flights"], cells)]).splitlines()
    assert len(lines) == 2 + len(amended.POLICIES)
    assert {line.count("|") for line in lines} == {len(amended.HEAD) + 1}


def test_the_begin_of_a_stream_keeps_the_budget_in_every_cut():
    found = list(begin.scored(next(streams.streams())))
    assert len(found) == len(begin.HEAD) - 1
    assert max(cell.adaptive for cell in found) <= 0.012
    assert max(cell.kslack for cell in found) <= 0.001


def test_inputs_in_step_drop_what_the_budget_allows_and_max_min_shares_drop_a_quarter():
    rows = list(catching_up.scored("two inputs, 1:2; 5,000"))
    dropped = {(shares, policy): float(share.split()[0]) for _, shares, policy, share, *_ in rows}
    assert dropped["max-min", "`AqKSlack(0.01)`"] > 20
    assert dropped["in step", "`AqKSlack(0.01)`"] <= 1
    assert dropped["in step", "`KSlack()`"] < dropped["in step", "`AqKSlack(0.01)`"]
    assert {len(row) for row in rows} == {len(catching_up.HEAD)}


@pytest.mark.parametrize("in_step", [False, True])
def test_a_backlog_is_read_once_in_batches_of_the_budget(in_step: bool):
    backlog = catching_up.Backlog.of((1, 3, 4))
    event, since = backlog.read(5_000, in_step=in_step)
    assert np.sort(event).tolist() == np.sort(np.concatenate(list(backlog.inputs.values()))).tolist()
    assert len(since) == -(-len(event) // 5_000)
    assert (None in since) is not in_step
