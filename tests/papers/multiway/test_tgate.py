"""T-Gate by its methods, and under stress: threads without the GIL, more of them than cores."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from skypane.types import BadInputError, ConfigError, IntArray
from skypane_papers.multiway import Ready, TGate


def numbers(*values: int) -> IntArray:
    return np.array(values, np.int64)


def taken(gate: TGate, consumer: int = 0) -> list[tuple[int, int, int]]:
    found = gate.get_ready_tuples(1_000, consumer)
    return list(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.parametrize(
    ("ready", "first"),
    [
        (Ready.IN_ORDER, [(1, 0, 10), (2, 1, 20)]),
        (Ready.DEFINITION_1, [(1, 0, 10), (2, 1, 20)]),
        (Ready.LAST_HELD, [(1, 0, 10)]),
    ],
)
def test_a_tuple_is_ready_when_every_input_has_spoken_of_its_time(ready: Ready, first: list[tuple[int, int, int]]):
    gate = TGate(2, ready=ready)
    assert gate.insert_tuples(0, numbers(1, 3), numbers(10, 11)) == 2
    assert gate.get_next_ready_tuple() is None  # input 1 is silent
    assert gate.insert_tuple(1, 2, 20)
    assert taken(gate) == first
    gate.leave(1)
    assert [payload for _, _, payload in first + taken(gate)] == (
        [10, 20] if ready is Ready.LAST_HELD else [10, 20, 11]
    )


def test_every_consumer_gets_every_tuple():
    gate = TGate(1, consumers=2)
    gate.insert_tuples(0, numbers(1, 2, 3), numbers(1, 2, 3))
    assert taken(gate, 0) == taken(gate, 1) == [(1, 0, 1), (2, 0, 2), (3, 0, 3)]


def test_an_input_that_joins_is_waited_for_and_may_not_go_back_behind_what_is_taken():
    gate = TGate(1, later=1)
    gate.insert_tuples(0, numbers(1, 5), numbers(1, 2))
    assert len(taken(gate)) == 2
    assert gate.join() == 1
    gate.insert_tuple(0, 9, 3)
    assert taken(gate) == []
    with pytest.raises(BadInputError, match="input 1 goes backwards: tuple 0 has time 4 after time 5"):
        gate.insert_tuple(1, 4, 7)
    assert gate.insert_tuple(1, 7, 8)
    assert taken(gate) == [(7, 1, 8)]
    with pytest.raises(ConfigError, match="later is too small; the gate has room for 2 inputs only"):
        gate.join()


def test_bad_input_is_an_error_that_names_input_and_tuple():
    gate = TGate(2)
    with pytest.raises(BadInputError, match="input 0 goes backwards: tuple 2 has time 3 after time 4"):
        gate.insert_tuples(0, numbers(1, 4, 3), numbers(1, 2, 3))
    with pytest.raises(BadInputError, match="input must be 0 to 1, got 2"):
        gate.insert_tuple(2, 1, 1)
    gate.leave(1)
    with pytest.raises(BadInputError, match="input 1 has left"):
        gate.insert_tuple(1, 1, 1)


def test_a_full_arena_reports_it_and_takes_the_rest_when_there_is_room():
    gate = TGate(2, room=8, segment=4)
    times = np.arange(100)
    done = gate.insert_tuples(0, times, times)
    assert 8 <= done < 100
    assert gate.insert_tuples(1, times[:1] + 1_000, times[:1]) == 1
    while done < 100:
        assert taken(gate)
        done += gate.insert_tuples(0, times[done:], times[done:])
    gate.leave(0)
    gate.get_ready_tuples(1_000)


def run(*bodies: Callable[[], None]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("ready", [Ready.IN_ORDER, Ready.LAST_HELD])
def test_an_endless_stream_of_many_threads_comes_out_whole_and_in_order_in_bounded_memory(ready: Ready):
    """Six producers and two consumers on any number of cores; each input is many times what its arena holds."""
    inputs, count = 6, 8_000
    gate = TGate(inputs, consumers=2, ready=ready, room=512, segment=64)
    rng = np.random.default_rng(4)
    times = [np.cumsum(rng.integers(0 if ready is Ready.IN_ORDER else 1, 4, count)) for _ in range(inputs)]
    found: list[list[IntArray]] = [[], []]

    def produce(source: int) -> None:
        done, numbered = 0, np.arange(count)
        while done < count:
            done += gate.insert_tuples(source, times[source][done : done + 200], numbered[done : done + 200])
        gate.leave(source)

    def consume(consumer: int) -> None:
        left = inputs * count
        while left:
            tuples = gate.get_ready_tuples(500, consumer)
            found[consumer].append(np.column_stack(tuples))
            left -= len(tuples.times)

    run(*(lambda source=source: produce(source) for source in range(inputs)), *(lambda c=c: consume(c) for c in (0, 1)))
    every = np.concatenate([np.column_stack([t, np.full(count, s), np.arange(count)]) for s, t in enumerate(times)])
    first, second = (np.concatenate(pieces) for pieces in found)
    assert (first == second).all()
    assert (np.diff(first[:, 0]) >= 0).all()
    by_input = np.lexsort((every[:, 2], every[:, 1], every[:, 0]))
    if ready is Ready.IN_ORDER:
        assert (first == every[by_input]).all()
    else:
        assert (first[np.lexsort((first[:, 2], first[:, 1], first[:, 0]))] == every[by_input]).all()
