"""Drivers that start on one checkpoint and work side by side: every order of their strokes, each stopped after any of them.

The engine's shell, ledger, ownership, tidying and folder of output are the real ones; the disk is a value (tests/model).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import cache

import pytest
from tests.model.disk import EMPTY, Disk, Open
from tests.model.exploring import Exploration, Frozen, Program, alone
from tests.runtime.starts import CHECKPOINT, OUTPUT, PLAIN, driver, has_folder

from skypane.runtime.spark.engine import ownership

SKYPANE = f"{CHECKPOINT}/skypane"
ENDS = {"done", "taken over", "others were faster"}


def begun(batches: int) -> Disk:
    """A checkpoint with so many batches."""
    if not batches:
        return EMPTY
    disk, ended = alone(driver(9, batches), EMPTY)
    assert ended == "done"
    return disk


def below(disk: Disk, folder: str) -> dict[str, object]:
    return {path.removeprefix(f"{folder}/"): there for path, there in disk.items() if path.startswith(f"{folder}/")}


def latest(disk: Disk) -> dict[str, object]:
    """The newest manifest."""
    newest = max(path for path in disk if path.startswith(f"{SKYPANE}/ledger/"))
    content = disk[newest]
    assert isinstance(content, bytes)
    document: dict[str, object] = json.loads(content)["document"]
    return document


def check_whole(disk: Disk, batches: int) -> None:
    """One start after all others has finished: each batch's answers are there once, and nothing that is not needed."""
    disk, ended = alone(driver(8, batches), disk)
    assert ended == "done"
    answers = below(disk, OUTPUT)
    parts = {f"part-{batch:012d}-00000.json": b'{"batch": %d}\n' % batch for batch in range(batches)}
    assert {name: there for name, there in answers.items() if there is not None} == {
        **parts,
        "_skypane.json": answers["_skypane.json"],
    }
    operator = latest(disk)["operator"]
    assert isinstance(operator, dict)
    assert below(disk, f"{SKYPANE}/partials").keys() == set(operator["files"])
    assert len(below(disk, f"{SKYPANE}/owner")) == len(below(disk, f"{OUTPUT}/_staging")) == 1


def check_changes_nothing(who: int, before: Disk, after: Disk) -> None:
    """A driver whose folder is gone from a place adds no file there, and replaces or removes none; tasks may leave partials."""
    for path in before.keys() | after.keys():
        was, is_now = before.get(path), after.get(path)
        if was == is_now or (path.startswith(f"{SKYPANE}/partials/") and (path not in before or isinstance(was, Open))):
            continue
        place = f"{OUTPUT}/_staging" if path.startswith(OUTPUT) else f"{SKYPANE}/owner"
        assert has_folder(who, place, before), f"{path}: {was!r} became {is_now!r}"


def explore(drivers: Sequence[int], before: int, batches: int) -> Counter[tuple[Hashable, ...]]:
    """Check all that can be, and return how the drivers end, each of which goes on to so many batches."""

    @cache
    def check(disk: Frozen) -> None:
        check_whole(dict(disk), batches)

    ends: Counter[tuple[Hashable, ...]] = Counter()
    for state, ended in _exploration(drivers, before, PLAIN).states():
        check(state.disk)
        if len(ended) == len(drivers):
            ends[tuple(ended)] += 1
    return ends


def _exploration(drivers: Sequence[int], before: int, plain: Collection[str]) -> Exploration:
    programs = [Program(driver(who, to), f"driver {who}", plain) for who, to in enumerate(drivers, 1)]
    return Exploration(programs, begun(before), lambda index, *disks: check_changes_nothing(index + 1, *disks))


def check_ends(ends: Iterable[tuple[Hashable, ...]]) -> None:
    for outcomes in ends:
        assert set(outcomes) <= ENDS
        assert "done" in outcomes, "the last to start is in charge"
    assert {outcomes[0] for outcomes in ends} >= {"done", "taken over"}


@pytest.mark.parametrize("before", [0, 1])
def test_two_drivers_leave_a_whole_checkpoint_however_they_interleave(before: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", 1)
    check_ends(explore([before + 1] * 2, before, before + 1))


@pytest.mark.slow
@pytest.mark.parametrize(("drivers", "tries", "batches"), [(2, 2, 1), (2, 1, 2)])
def test_more_drivers_tries_and_batches_do_too(drivers: int, tries: int, batches: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_TRIES", tries)
    check_ends(explore([1 + batches] * drivers, 1, 1 + batches))


@pytest.mark.parametrize("walks", [50, pytest.param(2_000, marks=pytest.mark.slow)])
def test_three_drivers_do_too_in_orders_that_are_drawn(walks: int, monkeypatch: pytest.MonkeyPatch):
    """All orders of three are too many to go through: each drawn one is stopped after any of its strokes, and at its end."""
    monkeypatch.setattr(ownership, "_TRIES", 5)
    chance, exploration = random.Random(1), _exploration([2, 2, 2], 1, PLAIN)
    for _ in range(walks):
        states = list(exploration.walk(chance))
        last, ended = states[-1]
        assert set(ended) <= ENDS
        assert "done" in ended, "the last to start is in charge"
        for state in (chance.choice(states)[0], last):
            check_whole(dict(state.disk), 2)


@pytest.mark.slow
def test_what_drivers_have_forgotten_makes_no_difference(monkeypatch: pytest.MonkeyPatch):
    """States are told apart by what drivers remember; told apart by all they ever heard, they come to the same disks."""
    monkeypatch.setattr(ownership, "_TRIES", 1)
    seen = []
    for plain in (PLAIN, {"driver.<locals>.script"}):
        disks, ends = set(), set()
        for state, ended in _exploration([2, 2], 1, plain).states():
            disks.add(state.disk)
            ends.add(frozenset(ended))
        seen.append((disks, ends))
    assert seen[0] == seen[1]
