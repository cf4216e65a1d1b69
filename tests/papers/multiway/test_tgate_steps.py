"""Each step of a T-Gate against a naive definition, by one thread: the kernels as plain Python, without preemption."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.papers.multiway.twin import Scheduler, preempted, twin

from skypane_papers.multiway.kernels import tgate
from skypane_papers.multiway.kernels.tgate import (
    CLOCK,
    DEFINITION_1,
    END,
    ENTRY,
    IN_ORDER,
    LAST,
    LAST_HELD,
    LEVELS,
    NEWEST,
    PAD,
    SERIAL,
)

STEPS = twin(tgate, Scheduler(preempted({})))
RULES = [IN_ORDER, DEFINITION_1, LAST_HELD]
INPUTS = 3


def filled(seed: int, rule: int, tuples: int = 60) -> Any:
    """Return a gate with tuples of all inputs, inserted in a random order."""
    rng = random.Random(seed)
    gate = STEPS.new_gate(INPUTS, 2, 12, 4, rule)
    newest = [0] * INPUTS
    for payload in range(tuples):
        source = payload if payload < INPUTS else rng.randrange(INPUTS)
        newest[source] += rng.randrange(3)
        insert(gate, source, newest[source], payload)
    return gate


def insert(gate: Any, source: int, time: int, payload: int = 0) -> int:
    done: int = STEPS.insert_tuples(gate, source, np.array([time]), np.array([payload]))
    return done


def nodes(gate: Any, level: int = 0, after: int = END) -> list[int]:
    """Return the nodes of a level in the order of their links, from the first node or the one after another."""
    found, node = [], gate.words[STEPS.link_of(gate, after, level)]
    while node != END:
        found.append(int(node))
        node = gate.words[STEPS.link_of(gate, node, level)]
    return found


def key(gate: Any, node: int) -> tuple[int, int, int]:
    """Return time, input and serial of a node."""
    owner = int(STEPS.owner_of(gate, node))
    return int(STEPS.time_of(gate, node)), owner >> SERIAL, owner & LAST


def taken(gate: Any, consumer: int, most: int) -> list[tuple[int, int]]:
    """Return the times and inputs of the next ready tuples."""
    times, sources, payloads = (np.zeros(most, np.int64) for _ in range(3))
    count = STEPS.get_ready_tuples(gate, consumer, times, sources, payloads)
    return list(zip(times[:count].tolist(), sources[:count].tolist(), strict=True))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_each_level_links_its_nodes_in_order(seed: int, rule: int):
    gate = filled(seed, rule)
    lowest = nodes(gate)
    assert len(lowest) == 60
    keys = [key(gate, node) for node in lowest]
    assert keys == sorted(keys) if rule == IN_ORDER else [k[0] for k in keys] == sorted(k[0] for k in keys)
    for level in range(1, LEVELS):
        assert nodes(gate, level) == [node for node in lowest if STEPS.height_of(gate, node) > level]


@pytest.mark.parametrize("rule", RULES)
def test_a_search_ends_on_each_level_at_the_last_node_that_belongs_before_the_tuple(rule: int):
    gate = filled(1, rule)
    parts = 2 if rule == IN_ORDER else 1  # of the key, by which tuples are ordered
    for source in range(INPUTS):
        newest = int(STEPS.newest_time(gate, source))
        for time in range(newest, newest + 6):
            STEPS.find_places(gate, source, time)
            hints = gate.words[gate.hints + source * PAD :][:LEVELS].tolist()
            for level in range(LEVELS):
                before = [n for n in nodes(gate, level) if key(gate, n)[:parts] <= (time, source)[:parts]]
                assert hints[level] == (before[-1] if before else END)


def test_nodes_of_an_input_come_from_its_ring_until_it_is_full():
    gate = STEPS.new_gate(INPUTS, 1, 3, 4, IN_ORDER)
    for source in range(INPUTS):
        first = source * 3 * 4 + 1
        assert [STEPS.new_node(gate, source) for _ in range(13)] == [*range(first, first + 12), END]


def test_the_last_node_of_a_segment_has_all_levels():
    gate = filled(2, IN_ORDER)
    full = [node for node in nodes(gate) if STEPS.height_of(gate, node) == LEVELS]
    assert {node for node in nodes(gate) if node % gate.segment == 0} <= set(full)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", RULES)
def test_the_ready_tuples_are_those_that_the_newest_of_all_inputs_allow(seed: int, rule: int):
    gate = filled(seed, rule)
    newest = [int(STEPS.newest_time(gate, source)) for source in range(INPUTS)]
    expected = []
    for node in nodes(gate):
        time, source, serial = key(gate, node)
        last = serial + 1 == gate.words[gate.written + source * PAD]
        if rule == IN_ORDER:
            ready = all((time, source) <= (newest[other], other) for other in range(INPUTS))
        else:
            ready = time <= min(newest) and not (rule == LAST_HELD and last)
        if not ready:
            break
        expected.append((time, source))
    assert taken(gate, 0, 100) == taken(gate, 1, 100) == expected


def test_somebody_is_exhausted_until_it_sends_a_tuple():
    gate = STEPS.new_gate(2, 1, 3, 4, IN_ORDER)
    insert(gate, 0, 1)
    insert(gate, 1, 5)
    assert not STEPS.somebody_is_exhausted(gate, 0)
    assert taken(gate, 0, 9) == [(1, 0)]
    assert STEPS.somebody_is_exhausted(gate, 0)
    insert(gate, 1, 6)
    assert STEPS.somebody_is_exhausted(gate, 0)
    insert(gate, 0, 7)
    assert not STEPS.somebody_is_exhausted(gate, 0)


def test_somebody_is_behind_the_newest_time_of_the_slowest_input():
    gate = filled(3, IN_ORDER)
    newest = [gate.words[gate.room + source * PAD + NEWEST] for source in range(INPUTS)]
    for time in range(int(max(newest)) + 2):
        assert STEPS.somebody_is_behind(gate, time) == (min(newest) < time)


@pytest.mark.parametrize("rule", RULES)
def test_a_node_comes_before_another_if_it_does_on_all_levels(rule: int):
    gate = filled(4, rule)
    for node in nodes(gate):
        for other in nodes(gate):
            mine, its = key(gate, node), key(gate, other)
            assert STEPS.comes_before(gate, node, other) == (mine < its if rule == IN_ORDER else mine[0] < its[0])


def test_the_next_entry_is_the_last_full_node_that_the_slowest_consumer_has_passed():
    gate = filled(5, IN_ORDER)
    for steps in (7, 1, 11, 4):
        for consumer in (0, 1):
            taken(gate, consumer, steps * (consumer + 1))
        full = [END, *(node for node in nodes(gate) if STEPS.height_of(gate, node) == LEVELS)]
        order = [END, *nodes(gate)]
        heads = [order.index(gate.words[gate.heads + consumer * PAD]) for consumer in (0, 1)]
        assert STEPS.next_entry(gate) == [node for node in full if order.index(node) <= min(heads)][-1]


def test_the_oldest_call_is_the_least_clock_of_the_active_inputs():
    gate = STEPS.new_gate(INPUTS, 1, 3, 4, IN_ORDER)
    gate.words[gate.shared + CLOCK] = 9
    assert STEPS.oldest_call(gate) == 9
    gate.words[gate.active + PAD], gate.words[gate.active + 2 * PAD] = 7, 4
    assert STEPS.oldest_call(gate) == 4


def test_full_segments_before_the_entry_are_retired_and_freed_after_older_calls():
    gate = filled(6, IN_ORDER)
    lowest = nodes(gate)
    entry = [node for node in lowest if node % gate.segment == 0][-2]
    STEPS.retire_segments(gate, entry, 5)
    before = {(node - 1) // gate.segment for node in lowest[: lowest.index(entry)] if node % gate.segment == 0}
    limbo = gate.words[gate.limbo : gate.limbo + gate.segments]
    assert set(np.flatnonzero(limbo == 5).tolist()) == before
    used = gate.words[gate.used : gate.used + gate.segments].copy()
    STEPS.free_retired(gate, 4)  # a call is under way that began before
    assert gate.words[gate.used : gate.used + gate.segments].tolist() == used.tolist()
    STEPS.free_retired(gate, 5)
    used[list(before)] = 0
    assert gate.words[gate.used : gate.used + gate.segments].tolist() == used.tolist()
    assert not limbo.any()


def test_an_input_forgets_the_places_before_the_entry():
    gate = filled(7, IN_ORDER)
    entry = next(node for node in reversed(nodes(gate)) if STEPS.height_of(gate, node) == LEVELS)
    gate.words[gate.shared + ENTRY] = entry
    for source in range(INPUTS):
        STEPS.begin(gate, source)
        assert gate.words[gate.active + source * PAD] == gate.words[gate.shared + CLOCK]
        for level in range(LEVELS):
            place = int(gate.words[gate.hints + source * PAD + level])
            assert place == entry or key(gate, place) > key(gate, entry)
