"""Drivers of one checkpoint in an object store, in any order of their requests: each row is answered for once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tests.chaos.driver import drive
from tests.chaos.naive import rows
from tests.parameters import slow_but
from tests.stores.requests import Turns, before_each
from tests.stores.streams import SCENARIOS, BucketStream

from skypane.runtime.spark.document_store import DocumentStore
from skypane.types import CheckpointError

pytestmark = pytest.mark.usefixtures("memory")


def stream(folder: Path, scenario: str, chance: random.Random) -> BucketStream:
    table = rows(chance.randrange(1 << 30), 3)
    folder.mkdir()
    return BucketStream(scenario, folder, table, chance.choice([0, 2]), chance.choice([-1, 1]))


def stream_of_two(folder: Path, scenario: str, chance: random.Random) -> BucketStream:
    """Return a stream with a late sink from its first batch on.

    A driver decides whether it has one before it takes over: it may finish a drain that another began with one.
    """
    return replace(stream(folder, scenario, chance), late_from=0)


def driven(made: BucketStream, seed: int, ends: list[str]) -> Callable[[], None]:
    def run() -> None:
        try:
            drive(made, random.Random(seed))
            ends.append("done")
        except CheckpointError as error:
            ends.append("taken over" if "taken it over" in str(error) else repr(error))
        except Exception as error:  # noqa: BLE001 - reported by the test
            ends.append(repr(error))

    return run


def turns_of(chance: random.Random) -> Callable[[int], int]:
    """Return whose turn it is: one driver goes on for a while, which may be as long as the other one lives."""
    left, last = 0, 0

    def choose(count: int) -> int:
        nonlocal left, last
        if left == 0 or last >= count:
            left, last = chance.choice([1, 3, 10, 40, 200]), chance.randrange(count)
        left -= 1
        return last

    return choose


@pytest.mark.parametrize(
    "orders", [6, pytest.param(120, marks=pytest.mark.slow), pytest.param(3_000, marks=pytest.mark.night)]
)
def test_of_two_drivers_one_continues_and_nothing_is_lost_or_doubled(orders: int, tmp_path: Path):
    ends: list[str] = []
    for seed in range(orders):
        chance = random.Random(seed)
        made = stream_of_two(tmp_path / f"order-{seed}", chance.choice(SCENARIOS), chance)
        Turns(turns_of(chance)).run(driven(made, seed, ends), driven(made, seed + 1, ends))
        assert set(ends) <= {"done", "taken over"}, f"seed {seed}"
        made.check()
    assert set(ends) == {"done", "taken over"}


def test_a_start_removes_what_spark_has_left_unfinished_and_nothing_else(tmp_path: Path):
    made = stream(tmp_path / "stream", "skyline", random.Random(0))
    offsets = DocumentStore.at(f"{made.place}/checkpoint/offsets")
    for name in (".0.5a0e6a6e.tmp", ".hidden", "notes.tmp"):
        with offsets.open_output(name) as out:
            out.write(b"v1")
    drive(made, random.Random(0))
    assert offsets.names() == [".hidden", "notes.tmp"]


class Killed(BaseException):
    """Ends a driver at a request, for good."""


@pytest.mark.parametrize(
    ("when", "scenario", "step"),
    slow_but(
        [("after", "rolling", 5)],
        [("after", "rolling", 5), *product(("before", "after"), SCENARIOS, (3, 1))],
        [*product(("before", "after"), SCENARIOS, (3,))],
    ),
)
def test_a_driver_may_end_at_any_request(when: str, scenario: str, step: int, tmp_path: Path):
    """At each fifth one in every run, at each third one in slow ones."""
    for at in range(1, 1_000, step):
        left = at

        def kill(_: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed

        made = stream(tmp_path / f"{when}-{at}", scenario, random.Random(7))
        try:
            with before_each(kill) if when == "before" else before_each(lambda _: None, kill):
                drive(made, random.Random(at))
        except Killed:
            drive(made, random.Random(at + 1))
            made.check()
        else:
            assert at > 50, "each request of the stream has been the last"
            return
    raise AssertionError("the stream does not end")
