"""T-Gate, its threads interleaved step by step, against its sequential specification."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.papers.multiway.twin import History, Operation, Scheduler, linearizable, preempted, schedules, twin

from skypane_papers.multiway.kernels import tgate

RULES = [tgate.IN_ORDER, tgate.DEFINITION_1, tgate.LAST_HELD]
CALLS = 5


@dataclass(frozen=True)
class Specification:
    """What a T-Gate is: each input's tuples in order, and how many of each input's a consumer has taken.

    A state is (tuples that have come, by input; tuples taken, by consumer and input).
    """

    rule: int
    times: tuple[tuple[int, ...], ...]

    def initial(self, consumers: int) -> Any:
        none = (0,) * len(self.times)
        return none, (none,) * consumers

    def step(self, state: Any, call: Operation) -> Any:
        came, taken = state
        if call.name == "insert":
            return (_plus_one(came, call.argument), taken)
        mine = taken[call.argument]
        if call.result is None:
            return None if self._must_answer(came, mine) else state
        time, source, number = call.result
        if number != mine[source] or number >= came[source] or self.times[source][number] != time:
            return None
        if not self._is_first(came, mine, source) or not self._is_ready(came, mine, source):
            return None
        return came, (*taken[: call.argument], _plus_one(mine, source), *taken[call.argument + 1 :])

    def _waiting(self, came: Any, mine: Any) -> list[tuple[int, int]]:
        return [(self.times[s][mine[s]], s) for s in range(len(came)) if mine[s] < came[s]]

    def _is_first(self, came: Any, mine: Any, source: int) -> bool:
        time, waiting = self.times[source][mine[source]], self._waiting(came, mine)
        return (time, source) == min(waiting) if self.rule == tgate.IN_ORDER else time == min(waiting)[0]

    def _is_ready(self, came: Any, mine: Any, source: int) -> bool:
        time = self.times[source][mine[source]]
        newest = [self.times[s][count - 1] if count else -1 for s, count in enumerate(came)]
        if self.rule == tgate.IN_ORDER:
            return all((time, source) <= (last, other) for other, last in enumerate(newest))
        held = self.rule == tgate.LAST_HELD and mine[source] + 1 == came[source]
        return not held and all(time <= last for last in newest)

    def _must_answer(self, came: Any, mine: Any) -> bool:
        """Whether each tuple that may be the first is ready: of those of one time, the list may begin with any."""
        first = [s for _, s in self._waiting(came, mine) if self._is_first(came, mine, s)]
        return bool(first) and all(self._is_ready(came, mine, source) for source in first)


def _plus_one(counts: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*counts[:at], counts[at] + 1, *counts[at + 1 :])


@dataclass(frozen=True)
class Script:
    """The inputs' tuples, what turns the threads take, and the rule."""

    rule: int
    times: tuple[tuple[int, ...], ...]
    consumers: int
    turns: Any

    @classmethod
    def of(cls, seed: int) -> Script:
        rng = random.Random(seed)
        times = []
        for _ in range(rng.choice([2, 2, 3])):
            now, mine = 0, []
            for _ in range(rng.randint(1, 3)):
                now += rng.choice([0, 1, 1, 2])
                mine.append(now)
            times.append(tuple(mine))
        turns = {rng.randint(1, 160): rng.randint(0, 3) for _ in range(rng.randint(1, 7))}
        return cls(RULES[seed % 3], tuple(times), rng.choice([1, 1, 2]), turns)

    def holds(self, changes: dict[str, str] | None = None) -> tuple[bool, int]:
        """Run it on a twin; return whether its history is one of a T-Gate, and how many steps it took."""
        scheduler, history = Scheduler(preempted(self.turns)), History()
        kernels = twin(tgate, scheduler, changes)
        gate = kernels.new_gate(len(self.times), self.consumers, 3, 2, self.rule)

        def produce(source: int) -> None:
            for number, time in enumerate(self.times[source]):
                one, payload = np.array([time]), np.array([number])
                insert = partial(kernels.insert_tuples, gate, source, one, payload)
                assert history.call(source, "insert", source, insert) == 1

        def take(consumer: int) -> Any:
            out = [np.zeros(1, np.int64) for _ in range(3)]
            count = kernels.get_ready_tuples(gate, consumer, *out)
            return tuple(int(column[0]) for column in out) if count else None

        def consume(consumer: int) -> None:
            for _ in range(CALLS):
                history.call(-1 - consumer, "take", consumer, partial(take, consumer))

        scheduler.run(
            [partial(produce, source) for source in range(len(self.times))]
            + [partial(consume, consumer) for consumer in range(self.consumers)]
        )
        specification = Specification(self.rule, self.times)
        return linearizable(history, specification.initial(self.consumers), specification.step), scheduler.steps


def fails(seeds: range, changes: dict[str, str]) -> bool:
    """Whether one of the scripts finds out."""
    return any(not _sound(Script.of(seed), changes) for seed in seeds)


def _sound(script: Script, changes: dict[str, str]) -> bool:
    try:
        return script.holds(changes)[0]
    except (AssertionError, IndexError):
        return False


def check(seeds: range) -> None:
    for seed in seeds:
        assert Script.of(seed).holds()[0], Script.of(seed)


@pytest.mark.long
def test_histories_of_alternating_threads_are_those_of_a_tgate():
    check(range(400))


def test_a_list_whose_consumer_checks_all_inputs_follows_definition_1():
    for seed in range(100):
        script = replace(Script.of(seed), rule=tgate.ASKED)
        assert script.holds()[0], script


@pytest.mark.night
def test_ten_thousand_histories_are_those_of_a_tgate():
    check(range(10_000, 20_000))


@pytest.mark.night
@pytest.mark.parametrize("rule", RULES)
def test_every_way_to_preempt_twice_gives_a_history_of_a_tgate(rule: int):
    times = ((1, 3), (2,))
    _, steps = Script(rule, times, 1, {}).holds()
    for turns in schedules(min(steps, 90), 2, 2):
        assert Script(rule, times, 1, turns).holds()[0], turns


MUTANTS = {
    "a tuple is said to have come before it is linked": {
        "    find_places(gate, source, time)\n": "    publish(gate.words, gate.written + source * PAD, serial + 1)\n"
        "    if serial == 0:\n        add(gate.words, gate.shared + SILENT, -1)\n    find_places(gate, source, time)\n",
        "    publish(gate.words, gate.written + source * PAD, serial + 1)\n    if serial == 0:\n"
        "        add(gate.words, gate.shared + SILENT, -1)\n    if node": "    if node",
    },
    "the node after the head is not looked at again": {
        "if load(gate.words, link_of(gate, head, 0)) == node:": "if True:",
    },
    "a link is written where another has been written since": {
        "if swap_if(gate.words, link_of(gate, place, level), following, node):": "store(gate.words, link_of(gate, place, level), node)\n        if True:",
    },
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found_out(mutant: str):
    assert fails(range(3_000), MUTANTS[mutant])
