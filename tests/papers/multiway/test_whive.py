"""W-Hive: its threads interleaved step by step against its sequential specification, and in threads without the GIL."""

from __future__ import annotations

import random
import threading
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.papers.multiway.test_designs import defined
from tests.papers.multiway.twin import History, Operation, Scheduler, StuckError, linearizable, preempted, twin

from skypane.types import BadInputError, ConfigError
from skypane_papers.multiway import Aggregation, WHive
from skypane_papers.multiway.kernels import whive

SIZE, ADVANCE = 4, 2


def starts(time: int) -> range:
    """Starts of the windows that hold a time."""
    return range(((time - SIZE) // ADVANCE + 1) * ADVANCE, time + 1, ADVANCE)


def step(state: Any, call: Operation) -> Any:
    """The sequential specification; a state is (what threads are done with, sums by start and key, last delivered)."""
    bounds, sums, last = state
    if call.name == "update":
        thread, time, key, value = call.argument
        after = Counter(dict(sums))
        for start in starts(time):
            after[start, key] += value
        return (*bounds[:thread], starts(time)[0], *bounds[thread + 1 :]), frozenset(after.items()), last
    if call.name == "finish":
        return (*bounds[: call.argument], 10**9, *bounds[call.argument + 1 :]), sums, last
    left = sorted({start for (start, _), _ in sums if start > last})
    ready = bool(left) and left[0] < min(bounds)
    if call.result is None:
        return None if ready else state
    start, items = call.result
    wanted = {key: value for (at, key), value in sums if at == start}
    return (bounds, sums, start) if ready and start == left[0] and items == wanted else None


def holds(seed: int, changes: dict[str, str] | None = None) -> bool:
    """Whether a history drawn by a seed is one of a W-Hive."""
    rng = random.Random(seed)
    threads = rng.choice([2, 2, 3])
    scripts: list[list[tuple[int, int]]] = []
    for _ in range(threads):
        times = sorted(rng.randint(0, 7) for _ in range(rng.randint(1, 2)))
        scripts.append([(time, rng.randint(0, 1)) for time in times])
    turns = {rng.randint(1, 250): rng.randint(0, 3) for _ in range(rng.randint(1, 7))}
    scheduler, history = Scheduler(preempted(turns)), History()
    kernels = twin(whive, scheduler, changes)
    hive = kernels.new_hive(threads, SIZE, ADVANCE, kernels.SUM, 4, 12)

    def update(thread: int) -> None:
        for time, key in scripts[thread]:
            columns = [np.array([word]) for word in (time, key, 1 + time)]
            body = partial(kernels.update_all, hive, thread, *columns)
            assert history.call(thread, "update", (thread, time, key, 1 + time), body) == 1
        history.call(thread, "finish", thread, partial(kernels.finish, hive, thread))

    def deliver() -> Any:
        keys, states = np.zeros(4, np.int64), np.zeros(4, np.int64)
        start, count = kernels.get_next_winset(hive, keys, states, np.zeros(1, np.int64))
        return (
            None
            if start == kernels.NOTHING
            else (int(start), dict(zip(keys[:count].tolist(), states[:count].tolist(), strict=True)))
        )

    def consume() -> None:
        for _ in range(6):
            history.call(-1, "deliver", None, deliver)

    scheduler.run([*(partial(update, thread) for thread in range(threads)), consume])
    return linearizable(history, ((-(10**9),) * threads, frozenset(), -(10**9)), step)


def found_out(seed: int, changes: dict[str, str]) -> bool:
    try:
        return not holds(seed, changes)
    except (StuckError, AssertionError, IndexError):
        return True


@pytest.mark.long
def test_histories_of_alternating_threads_are_those_of_a_whive():
    for seed in range(300):
        assert holds(seed), seed


@pytest.mark.night
def test_ten_thousand_histories_are_those_of_a_whive():
    for seed in range(10_000, 20_000):
        assert holds(seed), seed


MUTANTS = {
    "a winset is linked where another has been since": {
        "if swap_if(hive.words, hive.next + place, following, made):": "store(hive.words, hive.next + place, made)\n            if True:",
    },
    "a thread says what it is done with after it has updated": {
        "    store(hive.words, hive.written + thread * PAD, first)\n    if hive": "    if hive",
        "        start += hive.advance\n    return True": "        start += hive.advance\n"
        "    store(hive.words, hive.written + thread * PAD, first)\n    return True",
        "load(hive.words, hive.written + thread * PAD) <= hive.words[hive.start + slot]": "NOTHING < load(hive.words, hive.written + thread * PAD) < hive.words[hive.start + slot]",
    },
    "a state is written where another has been since": {
        "if swap_if(hive.words, hive.states + place, before, after):": "store(hive.words, hive.states + place, after)\n        if True:",
    },
    "the winset after the head is not looked at again": {
        "return slot if load(hive.words, hive.next + load(hive.words, hive.shared + HEAD)) == slot else END": "return slot",
    },
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found_out(mutant: str):
    assert any(found_out(seed, MUTANTS[mutant]) for seed in range(3_000))


def test_bad_input_is_an_error_that_names_what_is_wrong():
    hive = WHive(1, Aggregation(size=4, advance=2))
    with pytest.raises(BadInputError, match="thread 0 goes backwards: tuple 1 has time 3 after time 4"):
        hive.update_windows(0, np.array([4, 3]), np.array([0, 0]), np.array([1, 1]))
    with pytest.raises(ConfigError, match="function must be one of count, sum, max, first, avg, got 'mean'"):
        Aggregation(size=4, advance=2, function="mean")
    with pytest.raises(ConfigError, match="keys must be >= 1 and 0 < advance <= size, got advance=5, size=4"):
        Aggregation(size=4, advance=5)
    with pytest.raises(ConfigError, match="threads and spare must be at least 1, got threads=0"):
        WHive(0, Aggregation(size=4, advance=2))


@pytest.mark.long
@pytest.mark.parametrize("function", ["count", "sum", "max", "avg"])
def test_threads_without_the_gil_update_the_same_windows_in_bounded_memory(function: str):
    """More threads than cores, and many more winsets than there are slots."""
    threads, count, keys = 5, 1_500, 40
    what = Aggregation(30, 3, function, keys)
    hive = WHive(threads, what, spare=8)
    rng = np.random.default_rng(5)
    columns = [
        (np.cumsum(rng.integers(0, 2, count)), rng.integers(0, keys, count), rng.integers(-50, 50, count))
        for _ in range(threads)
    ]

    def update(thread: int) -> None:
        done = 0
        while done < count:
            done += hive.update_windows(thread, *(column[done : done + 100] for column in columns[thread]))
        hive.finish(thread)

    workers = [threading.Thread(target=update, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    found: dict[tuple[int, int], float] = {}
    last, ended = -(10**9), False
    while True:
        winset = hive.get_next_winset()
        if winset is None:
            if ended:
                break
            ended = not any(worker.is_alive() for worker in workers)
            continue
        assert winset.start > last
        last = winset.start
        found |= {
            (winset.start, key): state for key, state in zip(winset.keys.tolist(), winset.states.tolist(), strict=True)
        }
    inputs = [list(zip(*(column.tolist() for column in mine), strict=True)) for mine in columns]
    assert found == defined(inputs, what)
