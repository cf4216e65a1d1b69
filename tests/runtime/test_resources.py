from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skypane.runtime import resources as machine

MIB = 1 << 20


def test_cores_are_those_this_process_may_use():
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)


def test_available_memory_is_part_of_the_machine():
    available = machine.available_memory_bytes()
    assert available is None or available > 0


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Cgroups of version 2 below this folder, and no others; the process is in /a/b of them."""
    (tmp_path / "a/b").mkdir(parents=True)
    groups_file = tmp_path / "cgroup"
    groups_file.write_text("4:cpu,cpuacct:/c\n0::/a/b\n")
    monkeypatch.setattr(machine, "_HIERARCHIES", (replace(machine._HIERARCHIES[0], root=tmp_path),))
    monkeypatch.setattr(machine, "_OWN_GROUPS", groups_file)
    machine._groups.cache_clear()
    yield tmp_path
    machine._groups.cache_clear()


@pytest.mark.parametrize("place", [".", "a", "a/b"])
@pytest.mark.parametrize(
    ("text", "counts"), [("1073741824\n", True), ("max\n", False), ("9223372036854771712\n", False)]
)
def test_a_limit_of_the_own_group_or_a_parent_counts_if_it_is_less(place: str, text: str, counts: bool, groups: Path):
    physical = machine._physical()
    (groups / place / "memory.max").write_text(text)
    assert machine.memory_bytes() == (min(machine.GIB, physical) if counts else physical)


def test_the_least_limit_counts_and_those_of_others_do_not(groups: Path):
    for place, limit in ((".", 3 * MIB), ("a", 1 * MIB), ("a/b", 2 * MIB)):
        (groups / place / "memory.max").write_text(f"{limit}\n")
    (groups / "c").mkdir()
    (groups / "c/memory.max").write_text("1\n")
    assert machine.memory_bytes() == MIB


def test_a_path_that_is_not_there_is_passed_over(groups: Path):
    (groups / "cgroup").write_text("0::/docker/d\n")
    (groups / "memory.max").write_text(f"{MIB}\n")
    assert machine.memory_bytes() == MIB


def test_a_group_leaves_what_it_does_not_use(groups: Path):
    for name, text in (
        ("memory.max", f"{512 * MIB}\n"),
        ("memory.current", f"{300 * MIB}\n"),
        ("memory.stat", f"anon 5\ninactive_file {100 * MIB}\n"),
    ):
        (groups / "a" / name).write_text(text)
    free = machine.room_bytes()
    assert free is not None
    assert free <= 312 * MIB
    (groups / "a/memory.max").write_text("max\n")
    assert machine._container_room() == []
