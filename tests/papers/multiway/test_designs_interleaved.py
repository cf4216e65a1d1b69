"""The designs, their threads interleaved line by line, against what a multiway aggregate is defined to be."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.papers.multiway.lines import TurnLock, by_lines
from tests.papers.multiway.test_designs import Collected, Tuples, defined
from tests.papers.multiway.twin import Scheduler, preempted, schedules, twin
from tests.parameters import slow_but

from skypane_papers.multiway import (
    MQ,
    MQLF,
    Aggregation,
    ColumnarTuMLSC,
    ColumnarWiML,
    Multiway,
    TuMLMC,
    TuMLSC,
    WiML,
    by_columns,
    pane_windows,
)
from skypane_papers.multiway.kernels import pane_tables

WHAT = Aggregation(size=10, advance=5, function="sum", keys=2)
INPUTS: list[Tuples] = [[(0, 0, 1), (3, 1, 2), (8, 0, 4)], [(1, 0, 8), (3, 1, 16), (9, 1, 32)]]
CALLS = 6
DESIGNS: dict[str, Callable[[], Multiway]] = {
    "MQ": lambda: MQ(2, WHAT),
    "MQLF": lambda: MQLF(2, WHAT),
    "TuMLSC": lambda: TuMLSC(2, WHAT),
    "TuMLMC": lambda: TuMLMC(2, WHAT, workers=2),
    "ColumnarTuMLSC": lambda: ColumnarTuMLSC(2, WHAT),
    "WiML": lambda: WiML(2, WHAT),
    "ColumnarWiML": lambda: ColumnarWiML(2, WHAT),
    "ColumnarWiML of two threads": lambda: ColumnarWiML(2, WHAT, threads=2),
}
Turns = Mapping[int, int]


def send(design: Multiway, source: int, batch: int = 2) -> None:
    """An input's thread: all its tuples, then its leave; what there was no room for is tried some more times."""
    columns, done = np.array(INPUTS[source]).T, 0
    for _ in range(3 * CALLS):
        done += design.add(source, *columns[:, done : done + batch])
        if done == len(INPUTS[source]):
            return design.leave(source)
    return None


def run(make: Callable[[], Multiway], turns: Turns, *kernels: str) -> tuple[dict[tuple[int, int], float], int]:
    """Run a design's threads in such turns; return what was delivered, and how many steps there were.

    Collected holds that each window comes once, in order.
    """
    scheduler, collected = Scheduler(preempted(turns)), Collected()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_columns, "Lock", partial(TurnLock, scheduler), raising=False)
        if kernels:
            patch.setattr(pane_windows, "pane_tables", twin(pane_tables, scheduler))
        design = make()
        if isinstance(design, ColumnarWiML):
            begin(design)
        bodies = [*(partial(send, design, source) for source in range(2)), partial(some, collected.take, design)]
        bodies += [partial(some, design.work, worker) for worker in range(design.workers)]
        scheduler.run([by_lines(scheduler, body, *kernels) for body in bodies])
        for worker in range(design.workers):
            every(design.work, worker)
        every(collected.take, design)
    return collected.found, scheduler.steps


def begin(design: ColumnarWiML) -> None:
    """Let inputs offer tuples, and the output look: nothing is taken before it is known where windows begin."""
    for source, mine in enumerate(INPUTS):
        assert design.add(source, *np.array(mine[:1]).T) == 0
    assert design.next_winset() is None


def some(call: Callable[[Any], bool], argument: Any) -> None:
    for _ in range(CALLS):
        call(argument)


def every(call: Callable[[Any], bool], argument: Any) -> None:
    while call(argument):
        pass


def sound(make: Callable[[], Multiway], turns: Turns, *kernels: str) -> bool:
    return run(make, turns, *kernels)[0] == defined(INPUTS, WHAT)


def drawn(rng: random.Random, steps: int) -> dict[int, int]:
    return {rng.randint(1, steps): rng.randrange(4) for _ in range(rng.randint(2, 6))}


@pytest.mark.long
@pytest.mark.parametrize("each", slow_but((5,), (5, 1)))
@pytest.mark.parametrize("name", DESIGNS)
def test_ways_to_preempt_once_deliver_each_window_once_and_whole(name: str, each: int):
    """All of them in the slow tests, each fifth in the others."""
    _, steps = run(DESIGNS[name], {})
    for turns in islice(schedules(steps, 2, 1), 0, None, each):
        assert sound(DESIGNS[name], turns), turns


@pytest.mark.parametrize(
    ("seed", "count"), [pytest.param(5, 100, marks=pytest.mark.long), pytest.param(50, 3_000, marks=pytest.mark.night)]
)
@pytest.mark.parametrize("name", DESIGNS)
def test_drawn_turns_deliver_each_window_once_and_whole(name: str, seed: int, count: int):
    rng, (_, steps) = random.Random(seed), run(DESIGNS[name], {})
    for _ in range(count):
        turns = drawn(rng, steps)
        assert sound(DESIGNS[name], turns), turns


@pytest.mark.long
@pytest.mark.parametrize("each", slow_but((5,), (5, 1)))
@pytest.mark.parametrize("threads", [1, 2])
def test_a_table_that_two_inputs_share_loses_none_of_their_tuples(threads: int, each: int):
    """The kernels' lines are steps too: an input's thread may be preempted between the look at a state and its change."""
    make = partial(ColumnarWiML, 2, WHAT, threads=threads)
    kernels = pane_tables.__name__
    rng, (_, steps) = random.Random(6), run(make, {}, kernels)
    ways = islice(schedules(steps, 2, 1), 0, None, each)
    for turns in (*ways, *(drawn(rng, steps) for _ in range(100 // each))):
        assert sound(make, turns, kernels), turns
