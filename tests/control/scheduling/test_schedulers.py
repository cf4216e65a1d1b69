from __future__ import annotations

import heapq
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.scheduling import SCHEDULERS, Feedback, Merge, PaneResult, RunTask, WinUpdate, scheduler
from skypane.types import ConfigError
from skypane.windows import Windows

TUMBLING = Windows(1, 1)
OVERLAPPING = Windows(2, 1)  # pane i is in windows i - 1 and i
FOUR_PANES = Windows(4, 2)  # pane length 2: window k is panes k, k + 1

ALL = list(SCHEDULERS)


def test_windows_go_round_robin():
    wlq = scheduler("WIN_RR", OVERLAPPING, workers=2, first_pane=0)
    assert wlq.arrived(PaneResult(10, 0)) == [
        RunTask(1, WinUpdate(-1, 10, finalized=True)),  # only pane 0 of it is in the stream
        RunTask(0, WinUpdate(0, 10)),
    ]
    assert wlq.arrived(PaneResult(11, 1)) == [
        RunTask(0, WinUpdate(0, 11, finalized=True)),
        RunTask(1, WinUpdate(1, 11)),
    ]


def test_algorithm_3_of_paper_1_by_hand():
    """Two workers. Window -1 and 0 get result 10; result 11 of the busy window 0 waits, and goes where 0 was updated."""
    wlq = scheduler("WIN_FB", OVERLAPPING, workers=2, first_pane=0)
    assert wlq.arrived(PaneResult(10, 0, counter=2)) == [RunTask(0, WinUpdate(-1, 10)), RunTask(1, WinUpdate(0, 10))]
    assert wlq.arrived(PaneResult(11, 0, counter=2)) == []
    assert wlq.finished(Feedback(1, WinUpdate(0, 10))) == [RunTask(1, WinUpdate(0, 11))], (
        "the same window stays in cache"
    )
    assert wlq.finished(Feedback(0, WinUpdate(-1, 10))) == [RunTask(0, WinUpdate(-1, 11, finalized=True))]
    assert wlq.finished(Feedback(0, WinUpdate(-1, 11, finalized=True))) == [], "window 0 is busy: nothing to do"
    assert wlq.arrived(PaneResult(12, 1)) == [RunTask(0, WinUpdate(1, 12))], "another window starts at once"


def test_merges_fill_the_time_while_windows_are_busy():
    """One window of one pane in four partitions: one worker updates, the other merges two of those that wait."""
    wlq = scheduler("WIN_FB_MERGE", TUMBLING, workers=2)
    assert wlq.arrived(PaneResult(1, 0, 4)) == [RunTask(0, WinUpdate(0, 1))]
    assert wlq.arrived(PaneResult(2, 0, 4)) == [], "one result is nothing to merge"
    assert wlq.arrived(PaneResult(3, 0, 4)) == [RunTask(1, Merge(0, 2, 3))]
    assert wlq.arrived(PaneResult(4, 0, 4)) == []
    assert wlq.finished(Feedback(0, WinUpdate(0, 1))) == [RunTask(0, WinUpdate(0, 4))], "not final: a merge is running"
    assert wlq.finished(Feedback(1, Merge(0, 2, 3), result=5)) == []
    assert wlq.finished(Feedback(0, WinUpdate(0, 4))) == [RunTask(0, WinUpdate(0, 5, finalized=True))]
    assert wlq.finished(Feedback(0, WinUpdate(0, 5, finalized=True))) == []


def test_without_merge_the_second_worker_would_have_idled():
    wlq = scheduler("WIN_FB", TUMBLING, workers=2)
    for result in range(4):
        runs = wlq.arrived(PaneResult(result, 0, 4))
        assert bool(runs) == (result == 0)


@pytest.mark.parametrize("name", ["WIN_FB", "WIN_FB_MERGE"])
def test_ready_workers_share_the_windows_available(name: str):
    """Among workers that are ready the one that has waited longest is next: more workers than are needed are loaded alike."""
    wlq = scheduler(name, TUMBLING, workers=3)
    taken = []
    for pane in range(6):
        (run,) = wlq.arrived(PaneResult(pane, pane))
        taken.append(run.worker)
        wlq.finished(Feedback(run.worker, run.task))
    assert taken == [0, 1, 2, 0, 1, 2]


def test_a_worker_turned_off_finishes_its_task_and_gets_no_other():
    wlq = scheduler("WIN_FB", TUMBLING, workers=2)
    wlq.arrived(PaneResult(1, 0))
    assert wlq.arrived(PaneResult(2, 1)) == [RunTask(1, WinUpdate(1, 2, finalized=True))]
    assert wlq.scale(1) == []
    assert wlq.arrived(PaneResult(3, 2)) == []
    assert wlq.finished(Feedback(1, WinUpdate(1, 2, finalized=True))) == []
    assert wlq.scale(2) == [RunTask(1, WinUpdate(2, 3, finalized=True))], "awake again, it takes what waits"


def test_a_report_of_a_task_that_was_not_given_is_refused():
    wlq = scheduler("WIN_FB", TUMBLING, workers=2)
    with pytest.raises(ConfigError, match="worker 1 reports a task that it does not have"):
        wlq.finished(Feedback(1, WinUpdate(0, 1)))
    wlq = scheduler("WIN_FB_MERGE", TUMBLING, workers=2)
    for result in range(3):
        wlq.arrived(PaneResult(result, 0, 3))
    with pytest.raises(ConfigError, match="must name its result"):
        wlq.finished(Feedback(1, Merge(0, 1, 2)))


def test_unknown_names_and_no_workers_are_refused():
    with pytest.raises(ConfigError, match="one of WIN_RR, WIN_FB, WIN_FB_MERGE, got 'WIN'"):
        scheduler("WIN", TUMBLING, 1)
    with pytest.raises(ConfigError, match="workers must be at least 1, got 0"):
        scheduler("WIN_FB", TUMBLING, 0)


def test_windows_bound_to_workers_cannot_be_moved():
    wlq = scheduler("WIN_RR", OVERLAPPING, 2)
    wlq.scale(3)
    wlq.arrived(PaneResult(1, 0))
    with pytest.raises(ConfigError, match="from 3 to 2 workers while windows are open"):
        wlq.scale(2)


class Farm:
    """Executes instructions in random durations; keeps what each window was made of."""

    def __init__(self, wlq, random) -> None:
        self.wlq, self.random = wlq, random
        self.events: list[tuple[float, int, RunTask]] = []
        self.free: defaultdict[int, float] = defaultdict(float)
        self.made_of: dict[int, Counter[int]] = {}
        self.windows: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self.final: list[int] = []
        self.now, self.sequence, self.merges = 0.0, 0, 0

    def take(self, runs: list[RunTask]) -> None:
        for run in runs:
            self.sequence += 1
            end = max(self.now, self.free[run.worker]) + self.random.expovariate(1.0)
            self.free[run.worker] = end
            heapq.heappush(self.events, (end, self.sequence, run))

    def arrive(self, time: float, event: PaneResult) -> None:
        self.until(time)
        self.now = time
        self.made_of[event.result] = Counter([event.result])
        self.take(self.wlq.arrived(event))

    def until(self, time: float) -> None:
        while self.events and self.events[0][0] <= time:
            self.now, _, run = heapq.heappop(self.events)
            result = None
            if isinstance(run.task, WinUpdate):
                assert run.task.window not in self.final, "an update after the last one"
                self.windows[run.task.window] += self.made_of[run.task.result]
                if run.task.finalized:
                    self.final.append(run.task.window)
            else:
                self.merges += 1
                result = 1_000 + self.merges
                self.made_of[result] = self.made_of[run.task.first] + self.made_of[run.task.second]
            self.take(self.wlq.finished(Feedback(run.worker, run.task, result)))


@pytest.mark.parametrize("name", ALL)
@given(
    windows=st.sampled_from([TUMBLING, OVERLAPPING, FOUR_PANES, Windows(5, 2)]),
    workers=st.integers(1, 5),
    partitions=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    random=st.randoms(use_true_random=False),
)
def test_every_window_gets_every_result_of_its_panes_once(name, windows, workers, partitions, random):
    wlq = scheduler(name, windows, workers, first_pane=0)
    farm, arrivals = Farm(wlq, random), []
    for pane, count in enumerate(partitions):
        arrivals += [(pane + 3 * random.random(), PaneResult(10 * pane + part, pane, count)) for part in range(count)]
    for time, event in sorted(arrivals):
        farm.arrive(time, event)
        if name != "WIN_RR" and random.random() < 0.2:
            farm.take(wlq.scale(random.randint(1, 5)))
    farm.until(float("inf"))
    for window, results in farm.windows.items():
        panes = [pane for pane in windows.panes_of(window) if 0 <= pane < len(partitions)]
        assert results == Counter(10 * pane + part for pane in panes for part in range(partitions[pane]))
    complete = {window for window in farm.windows if windows.panes_of(window)[-1] < len(partitions)}
    assert sorted(farm.final) == sorted(complete), "final exactly once, as soon as all panes have come"


@pytest.mark.parametrize("name", ["WIN_FB", "WIN_FB_MERGE"])
@given(partitions=st.lists(st.integers(1, 4), min_size=1, max_size=8), random=st.randoms(use_true_random=False))
def test_one_window_is_never_updated_by_two_workers(name, partitions, random):
    wlq = scheduler(name, OVERLAPPING, 4, first_pane=0)
    running: dict[int, WinUpdate | Merge] = {}
    waiting = [PaneResult(10 * p + part, p, count) for p, count in enumerate(partitions) for part in range(count)]
    made = 1_000
    while waiting or running:
        if waiting and (not running or random.random() < 0.5):
            runs = wlq.arrived(waiting.pop(0))
        else:
            worker = random.choice(sorted(running))
            task = running.pop(worker)
            made += 1
            runs = wlq.finished(Feedback(worker, task, made if isinstance(task, Merge) else None))
        for run in runs:
            assert run.worker not in running, "a worker that is not ready"
            running[run.worker] = run.task
        updates = [task.window for task in running.values() if isinstance(task, WinUpdate)]
        assert len(set(updates)) == len(updates)
