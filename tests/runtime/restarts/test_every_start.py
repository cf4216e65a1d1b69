"""Drivers that start on one checkpoint and work side by side: every order of their strokes, each stopped after any of them.

The engine's shell, ledger, ownership, tidying and folder of output are the real ones; the disk is a value (tests/model).
Drivers that are exchanged for each other make another state: of two that start at once, the names decide.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pytest
from tests.model.disk import EMPTY, Content, Disk, Open
from tests.model.exploring import Exploration
from tests.model.programs import Afterwards, Program, alone
from tests.model.world import Frozen
from tests.runtime.starts import CHECKPOINT, OUTPUT, PLAIN, driver, has_folder

from skypane.runtime.spark.engine import ownership

SKYPANE, OFFSETS = f"{CHECKPOINT}/skypane", f"{CHECKPOINT}/offsets"
Ends: TypeAlias = set[tuple[Hashable, ...]]
ROLL = "1 hour"
ENDS = {"done", "taken over", "others were faster"}


def begun(batches: int, roll: str | None = None) -> Disk:
    """A checkpoint with so many batches."""
    if not batches:
        return EMPTY
    disk, ended = alone(driver(9, batches, roll), EMPTY)
    assert ended == "done"
    return disk


def below(disk: Disk, folder: str) -> dict[str, object]:
    return {path.removeprefix(f"{folder}/"): there for path, there in disk.items() if path.startswith(f"{folder}/")}


def check_whole(disk: Disk, batches: int) -> None:
    """Each batch's answers are there once, and nothing that is not needed."""
    answers = below(disk, OUTPUT)
    parts = {f"part-{batch:012d}-00000.json": b'{"batch": %d}\n' % batch for batch in range(batches)}
    assert {name: there for name, there in answers.items() if there is not None} == {
        **parts,
        "_skypane.json": answers["_skypane.json"],
    }
    check_needed(disk)


def check_each_once(disk: Disk, batches: int) -> None:
    """Each batch's answer is in one of the files, once, and none waits."""
    files = {name: there for name, there in below(disk, OUTPUT).items() if name.startswith("part-")}
    lines = [line for there in files.values() if isinstance(there, bytes) for line in there.splitlines()]
    assert sorted(json.loads(line)["batch"] for line in lines) == list(range(batches))
    check_needed(disk)


def check_needed(disk: Disk) -> None:
    """There are the partials that the newest manifest names, and one driver's folders."""
    newest = disk[max(path for path in disk if path.startswith(f"{SKYPANE}/ledger/"))]
    assert isinstance(newest, bytes)
    named = json.loads(newest)["document"]["operator"]["files"]
    assert below(disk, f"{SKYPANE}/partials").keys() == set(named)
    assert not [name for name in below(disk, OFFSETS) if name.endswith(".tmp")]
    assert len(below(disk, f"{SKYPANE}/owner")) == len(below(disk, f"{OUTPUT}/_staging")) == 1


def check_changes_nothing(who: int, before: Disk, after: Disk) -> None:
    """A driver whose folder is gone from a place adds no file there, and replaces or removes none."""
    for path in before.keys() | after.keys():
        was, is_now = before.get(path), after.get(path)
        if was != is_now and not _harms_nobody(who, path, was, is_now):
            place = f"{OUTPUT}/_staging" if path.startswith(OUTPUT) else f"{SKYPANE}/owner"
            assert has_folder(who, place, before), f"{path}: {was!r} became {is_now!r}"


def _harms_nobody(who: int, path: str, was: Content, is_now: Content) -> bool:
    """Return whether tasks have left a partial, or the driver has filled what it had opened, wherever that lies by now."""
    if isinstance(was, Open):
        return was.writer.startswith(f"driver {who}-") and isinstance(is_now, bytes)
    return was is None and path.startswith(f"{SKYPANE}/partials/")


def watching(batches: int, roll: str | None = None, share: float = 1) -> Callable[[int, Disk, Disk], None]:
    """Return what checks each change, and of a share of the disks that come of one what one start after all others makes of it."""
    afterwards, chance = Afterwards(driver(8, batches, roll), PLAIN), random.Random(1)
    finished = set[Frozen]()

    @cache
    def check(disk: Frozen) -> None:
        after, ended = afterwards.of(dict(disk))
        assert ended == "done"
        if (whole := frozenset(after.items())) not in finished:
            (check_whole if roll is None else check_each_once)(after, batches)
            finished.add(whole)

    def watch(index: int, before: Disk, after: Disk) -> None:
        check_changes_nothing(index + 1, before, after)
        if share == 1 or chance.random() < share:
            check(frozenset(after.items()))

    return watch


def programs(drivers: int, batches: int, plain: Collection[str] = PLAIN, roll: str | None = None) -> list[Program]:
    """Drivers each of which goes on to so many batches."""
    return [Program(driver(who, batches, roll), f"driver {who}", plain) for who in range(1, drivers + 1)]


def explore(drivers: int, before: int, batches: int, roll: str | None = None, share: float = 1) -> Exploration:
    """Return the exploration of drivers, each of which goes on to so many batches, that checks all that can be, or a share."""
    return Exploration(programs(drivers, batches, roll=roll), begun(before, roll), watching(batches, roll, share))


def check_ends(ends: Iterable[tuple[Hashable, ...]]) -> None:
    for outcomes in ends:
        assert set(outcomes) <= ENDS
        assert "done" in outcomes, "the last to start is in charge"
    assert {outcomes[0] for outcomes in ends} >= {"done", "taken over"}


@pytest.mark.parametrize("before", [0, 1])
def test_two_drivers_leave_a_whole_checkpoint_however_they_interleave(before: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    check_ends(explore(2, before, before + 1).ends())


def test_two_drivers_remove_what_spark_has_left_unfinished_however_they_interleave(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    disk = {**begun(1), OFFSETS: None, f"{OFFSETS}/.0.one.tmp": b"v1", f"{OFFSETS}/0": b"v1"}
    exploration = Exploration(programs(2, 2), disk, watching(2))
    check_ends(exploration.ends())
    assert {frozenset(below(dict(after), OFFSETS)) for after in exploration.disks} == {
        frozenset({".0.one.tmp", "0"}),
        frozenset({"0"}),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("tries", "batches"), [(2, 1), (1, 2)])
def test_more_tries_and_batches_do_too(tries: int, batches: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", tries)
    check_ends(explore(2, 1, 1 + batches).ends())


@pytest.mark.night
def test_three_drivers_do_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    check_ends(explore(3, 1, 2).ends())


@pytest.mark.parametrize(
    "orders", [200, pytest.param(2_000, marks=pytest.mark.slow), pytest.param(20_000, marks=pytest.mark.night)]
)
def test_three_drivers_that_try_again_do_too_in_orders_that_are_drawn(orders: int, monkeypatch: pytest.MonkeyPatch):
    """All orders of these are too many to go through: of each fiftieth disk that is come to it is checked what a start makes."""
    monkeypatch.setattr(ownership, "_TRIES", 5)
    check_ends(explore(3, 1, 2, share=0.02).drawn(orders, np.random.default_rng(1)))


@pytest.mark.slow
def test_two_drivers_whose_answers_wait_leave_each_answer_once_however_they_interleave(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    check_ends(explore(2, 1, 3, ROLL).ends())


@pytest.mark.parametrize("orders", [60, pytest.param(2_000, marks=pytest.mark.slow)])
def test_two_drivers_whose_answers_wait_do_so_in_orders_that_are_drawn(orders: int, monkeypatch: pytest.MonkeyPatch):
    """The first batch of each is delivered at once, the others wait until the end; a driver may wake at any time."""
    monkeypatch.setattr(ownership, "_TRIES", 5)
    check_ends(explore(2, 1, 3, ROLL, share=0.02).drawn(orders, np.random.default_rng(1)))


def gone_through(drivers: Sequence[Program], before: int, *, everything: bool) -> tuple[set[Frozen], Ends]:
    """Return the disks that drivers come to, and how they end."""
    exploration = Exploration(drivers, begun(before), lambda *_: None, everything=everything)
    ends = exploration.ends()
    return exploration.disks, set(ends)


@pytest.mark.parametrize("before", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_strokes_that_are_taken_at_once_make_no_difference(before: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    two = programs(2, before + 1)
    assert gone_through(two, before, everything=False) == gone_through(two, before, everything=True)


@pytest.mark.slow
def test_what_drivers_have_forgotten_makes_no_difference(monkeypatch: pytest.MonkeyPatch):
    """States are distinguished by what drivers remember; distinguished by all they ever received, they come to the same disks."""
    monkeypatch.setattr(ownership, "_TRIES", 1)
    forgetful, heedful = programs(2, 2), programs(2, 2, {"driver.<locals>.script"})
    assert gone_through(forgetful, 1, everything=False) == gone_through(heedful, 1, everything=False)
