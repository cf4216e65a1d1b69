"""Faults that are put into how a driver takes over, commits and tidies: going through all orders of two drivers finds each.

It does so whether strokes that nothing depends on are taken in every order or at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.model.exploring import Exploration
from tests.runtime.restarts.test_every_start import begun, check_ends, programs, watching

from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import ownership
from skypane.runtime.spark.engine.ownership import OWNER, Ownership


def take_without_a_second_look(root: DocumentStore) -> Ownership:
    owner = root.child(OWNER)
    owner.make()
    there = ownership.drivers_in(owner)
    driver = ownership.name_after(there)
    mine = owner.child(driver)
    mine.make()
    for other in there:
        driver_folders.end(owner, other, mine)
    mine.clear()
    return Ownership(mine, driver)


def end_in_several_strokes(parent: DocumentStore, other: str, _mine: DocumentStore) -> None:
    parent.remove_folder(other)


def write_from_elsewhere(_owned: Ownership, target: DocumentStore, name: str, value: object) -> None:
    target.write_json(name, value)


def remove_where_it_lies(_owned: Ownership, target: DocumentStore, names: Iterable[str]) -> None:
    target.remove(names)


def look_at_nothing(_owned: Ownership) -> None: ...


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a driver does not look whether another came at the same time": (Ownership, "take", take_without_a_second_look),
    "the folder of the driver before is deleted file by file": (driver_folders, "end", end_in_several_strokes),
    "a manifest does not come out of the driver's own folder": (Ownership, "write", write_from_elsewhere),
    "files that nothing needs do not go by way of the driver's own folder": (Ownership, "remove", remove_where_it_lies),
    "a driver never looks whether it is still in charge": (Ownership, "check", look_at_nothing),
}


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_is_found(fault: str, *, everything: bool, monkeypatch: pytest.MonkeyPatch):
    disk = begun(1)
    monkeypatch.setattr(ownership, "_TRIES", 1)
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError):
        check_ends(Exploration(programs(2, 2), disk, watching(2), everything=everything).ends())
