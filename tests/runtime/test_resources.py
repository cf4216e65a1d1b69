from __future__ import annotations

import os
from pathlib import Path

import pytest

from skypane.runtime import resources as machine


def test_cores_are_those_this_process_may_use():
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)


def test_available_memory_is_part_of_the_machine():
    available = machine.available_memory_bytes()
    assert available is None or available > 0


@pytest.mark.parametrize(
    ("text", "counts"), [("1073741824\n", True), ("max\n", False), ("9223372036854771712\n", False)]
)
def test_a_container_limit_counts_if_it_is_less(
    text: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(machine, "_CGROUP_LIMITS", ())
    physical = machine.memory_bytes()
    limit = tmp_path / "memory.max"
    limit.write_text(text)
    monkeypatch.setattr(machine, "_CGROUP_LIMITS", (tmp_path / "none", limit))
    assert machine.memory_bytes() == (min(machine.GIB, physical) if counts else physical)
