"""All designs of the multiway aggregate against its definition: the same winsets, in any order of inputs and threads."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skypane.types import BadInputError, ConfigError
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
)
from skypane_papers.multiway.kernels.texts import has_ip, has_mail

Tuples = list[tuple[int, int, int]]
"""Tuples of one input, in order: time, key, value."""

ORDERED: dict[str, Callable[[int, Aggregation], Multiway]] = {
    "MQ": lambda inputs, what: MQ(inputs, what, room=4),
    "MQLF": lambda inputs, what: MQLF(inputs, what, room=4),
    "TuMLSC": lambda inputs, what: TuMLSC(inputs, what, room=600),
    "TuMLMC": lambda inputs, what: TuMLMC(inputs, what, workers=2, room=600, spare=3),
    "ColumnarTuMLSC": lambda inputs, what: ColumnarTuMLSC(inputs, what, room=5, ahead=2),
}
DESIGNS = ORDERED | {
    "WiML": lambda inputs, what: WiML(inputs, what, spare=3),
    "ColumnarWiML": lambda inputs, what: ColumnarWiML(inputs, what, threads=2, ahead=3),
}
COMMENTS = ["call me", "a@b.org", "10.0.0.1 is mine", "x@y", "me@mail.example.com, or 1.2.3.4", ""]


def contributes(where: str, comment: str) -> bool:
    mail = re.search(r"[A-Za-z0-9+_.-]@([A-Za-z0-9-]+\.)+[A-Za-z]{2}", comment)
    address = re.search(r"(?<![\d.])\d{1,3}(\.\d{1,3}){3}(?!\d)", comment)
    address = address if address and all(int(part) < 256 for part in address[0].split(".")) else None
    return not where or bool(mail) or (where == "mail or ip" and bool(address))


def defined(inputs: list[Tuples], what: Aggregation) -> dict[tuple[int, int], float]:
    """What a multiway aggregate is: (start, key) -> the function of the key's tuples, by time, then input, then sequence."""
    merged = sorted((time, source, at) for source, mine in enumerate(inputs) for at, (time, _, _) in enumerate(mine))
    found: dict[tuple[int, int], list[int]] = {}
    for time, source, at in merged:
        _, key, value = inputs[source][at]
        if what.where and not contributes(what.where, COMMENTS[value]):
            continue
        first = ((time - what.size) // what.advance + 1) * what.advance
        for start in range(first, time + 1, what.advance):
            found.setdefault((start, key), []).append(value)
    meanings: dict[str, Callable[[list[int]], float]] = {
        "count": len, "sum": sum, "max": max, "first": lambda values: values[0],
        "avg": lambda values: sum(values) / len(values),
    }  # fmt: skip
    return {place: meanings[what.function](values) for place, values in found.items()}


class Collected:
    """What the output thread has had."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, int], float] = {}
        self.last: int | None = None

    def take(self, design: Multiway) -> bool:
        winset = design.next_winset()
        if winset is None:
            return False
        assert self.last is None or winset.start > self.last
        self.last = winset.start
        assert len(winset.keys)
        self.found |= {
            (winset.start, key): state for key, state in zip(winset.keys.tolist(), winset.states.tolist(), strict=True)
        }
        return True


def run_in_turns(design: Multiway, inputs: list[Tuples], seed: int) -> dict[tuple[int, int], float]:
    """Let inputs, update threads and the output alternate at random."""
    rng, done, collected = random.Random(seed), [0] * len(inputs), Collected()
    left = [False] * len(inputs)
    turns = 0
    while True:
        turns += 1
        assert turns < 20_000, "no end"
        who = rng.randrange(len(inputs) + design.workers + 1)
        if who < len(inputs) and not left[who]:
            if done[who] == len(inputs[who]):
                design.leave(who)
                left[who] = True
            else:
                some = np.array(inputs[who][done[who] : done[who] + rng.randint(1, 4)]).T
                done[who] += design.add(who, *some)
        elif len(inputs) <= who < len(inputs) + design.workers:
            design.work(who - len(inputs))
        elif who == len(inputs) + design.workers and not collected.take(design) and all(left):
            worked = [design.work(worker) for worker in range(design.workers)]
            if not any(worked) and not collected.take(design):
                return collected.found


@st.composite
def cases(draw: Any, functions: list[str]) -> tuple[list[Tuples], Aggregation, int]:
    rng = random.Random(draw(st.integers(0, 10**9)))
    where = draw(st.sampled_from(["", "", "mail", "mail or ip"]))
    size = draw(st.integers(1, 12))
    what = Aggregation(
        size,
        draw(st.integers(1, size)),
        draw(st.sampled_from(functions)),
        5,
        where,
        pa.array(COMMENTS) if where else None,
    )
    most, span = draw(st.integers(0, 25)), draw(st.sampled_from([3, 30, 400]))
    inputs = [
        [(time, rng.randrange(5), rng.randrange(len(COMMENTS)))
         for time in sorted(rng.randrange(-5, span) for _ in range(rng.randint(0, most)))]
        for _ in range(draw(st.integers(1, 4)))
    ]  # fmt: skip
    return inputs, what, rng.randrange(10**9)


@pytest.mark.long
@pytest.mark.parametrize("name", ORDERED)
@settings(max_examples=40)
@given(case=cases(["count", "sum", "max", "avg", "first"]))
def test_a_design_that_merges_gives_what_is_defined(name: str, case: tuple[list[Tuples], Aggregation, int]):
    inputs, what, seed = case
    assert run_in_turns(ORDERED[name](len(inputs), what), inputs, seed) == defined(inputs, what)


@pytest.mark.parametrize("name", ["WiML", "ColumnarWiML"])
@settings(max_examples=60)
@given(case=cases(["count", "sum", "max", "avg"]))
def test_a_design_that_does_not_merge_gives_the_same(name: str, case: tuple[list[Tuples], Aggregation, int]):
    inputs, what, seed = case
    assert run_in_turns(DESIGNS[name](len(inputs), what), inputs, seed) == defined(inputs, what)


@pytest.mark.long
@pytest.mark.parametrize("name", DESIGNS)
def test_threads_without_the_gil_give_what_is_defined(name: str):
    """A thread for each two inputs, more of them than cores."""
    rng = np.random.default_rng(3)
    count, each, keys = 6, 3_000, 20
    what = Aggregation(30, 3, "sum", keys)
    columns = [
        (np.cumsum(rng.integers(0, 2, each)), rng.integers(0, keys, each), rng.integers(0, 50, each))
        for _ in range(count)
    ]
    roomy: dict[str, Callable[[], Multiway]] = {
        "ColumnarWiML": lambda: ColumnarWiML(count, what, threads=3),
        "ColumnarTuMLSC": lambda: ColumnarTuMLSC(count, what),
    }
    design = roomy[name]() if name in roomy else type(DESIGNS[name](count, what))(count, what)
    collected = Collected()

    def send(mine: range) -> None:
        at = dict.fromkeys(mine, 0)
        while at:
            for source in list(at):
                some = (column[at[source] : at[source] + 100] for column in columns[source])
                at[source] += design.add(source, *some)
                if at[source] == each:
                    del at[source]
                    design.leave(source)

    def work(worker: int) -> None:
        while design.work(worker):
            pass

    senders = [threading.Thread(target=send, args=(range(first, count, 3),)) for first in range(3)]
    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(design.workers)]
    for thread in [*senders, *workers]:
        thread.start()
    while any(thread.is_alive() for thread in [*senders, *workers]):
        collected.take(design)
    while collected.take(design):
        pass
    inputs = [list(zip(*(column.tolist() for column in mine), strict=True)) for mine in columns]
    assert collected.found == defined(inputs, what)


ALMOST = "@b.org a@b.o a@b.o1g.de a@.org 1.2.3 1.2.3.256 1.2.3.4567 01.2.3.4x 1.1.2.3.4".split()


@pytest.mark.parametrize("text", [*COMMENTS, *ALMOST])
def test_a_text_holds_what_a_regular_expression_finds(text: str):
    data = np.frombuffer(text.encode(), np.uint8)
    assert has_mail(data, 0, len(data)) == contributes("mail", text)
    assert (has_mail(data, 0, len(data)) or has_ip(data, 0, len(data))) == contributes("mail or ip", text)


def test_bad_input_is_an_error_that_names_what_is_wrong():
    what, one = Aggregation(4, 2, keys=2), np.array([1])
    queues, windows, columns = MQ(2, what), WiML(1, what), ColumnarWiML(1, what)
    queues.add(0, np.array([5]), one, one)
    with pytest.raises(BadInputError, match="input 0 goes backwards: tuple 0 has time 1 after time 5"):
        queues.add(0, one, one, one)
    with pytest.raises(BadInputError, match=r"key must be a whole number from 0 to 2147483647, got -1"):
        TuMLSC(1, what).add(0, one, -one, one)
    with pytest.raises(
        BadInputError, match="value must be a whole number from -2147483648 to 2147483647, got 4294967296"
    ):
        TuMLMC(1, what).add(0, one, one, one << 32)
    with pytest.raises(
        ConfigError, match="function first needs tuples in order, but WiML does not merge them; use TuMLSC or TuMLMC"
    ):
        WiML(1, Aggregation(4, 2, "first"))
    with pytest.raises(ConfigError, match="comments is missing; where='mail' needs texts"):
        Aggregation(4, 2, where="mail")
    with pytest.raises(ConfigError, match="worker must be an update thread, 0 to 0, got 1"):
        TuMLMC(1, what).work(1)
    assert columns.add(0, one, one + 1, one) == 0  # where windows begin is not known yet
    columns.next_winset()
    with pytest.raises(BadInputError, match="keys must be 0 to 1, got 2 to 2; raise keys= of the aggregation"):
        columns.add(0, one, one + 1, one)
    with pytest.raises(ConfigError, match="threads and ahead must be at least 1, got threads=0, ahead=64"):
        ColumnarWiML(1, what, threads=0)
    windows.leave(0)
    with pytest.raises(BadInputError, match="input 0 has left and may not send again"):
        windows.add(0, one, one, one)


def test_a_window_with_more_keys_than_it_has_room_for_is_an_error():
    design = MQLF(1, Aggregation(4, 2, keys=2))
    design.add(0, np.zeros(5, np.int64), np.arange(5), np.arange(5))
    design.leave(0)
    with pytest.raises(ConfigError, match="keys is too small; a window has more than 4 keys"):
        design.next_winset()


def test_a_thread_far_ahead_leaves_room_for_the_windows_of_the_slowest():
    """Were all winsets its own, nothing could be delivered, and nobody could go on."""
    design = WiML(2, Aggregation(1, 1, "sum", keys=1), spare=2)
    fast = np.arange(100, 150)
    done = design.add(0, fast, fast * 0, fast)
    assert done < len(fast)
    assert design.add(1, np.array([3, 200]), np.zeros(2, np.int64), np.array([7, 8])) == 1
    found = design.next_winset()
    assert found is not None
    assert (found.start, found.states.tolist()) == (3, [7])


def test_the_offers_of_an_input_define_where_windows_begin():
    """Nothing of it was taken, yet windows begin there: a tuple before them would be in the pane of a later one."""
    design, one = ColumnarWiML(1, Aggregation(4, 2, "sum", keys=1), ahead=1), np.array([1])
    assert design.add(0, np.array([20]), one - 1, one) == 0
    assert design.next_winset() is None
    with pytest.raises(BadInputError, match="input 0 goes backwards: tuple 0 has time 7 after time 20"):
        design.add(0, np.array([7]), one - 1, one)
    assert design.add(0, np.array([20]), one - 1, one) == 1
