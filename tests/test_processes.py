"""How tests are shared out among processes."""

from __future__ import annotations

import re
from functools import partial

import pytest
from tests.checkout import ROOT
from tests.processes import APART, together, turn, workers

from skypane.runtime.resources import GIB


@pytest.mark.parametrize(
    ("cores", "memory", "goal", "expected"),
    [(2, 24 * GIB, "test", 2), (2, 24 * GIB, "night or slow", 3), (8, 10 * GIB, "slow", 2), (1, GIB, "", 1), (4, GIB, "", 1)],
)  # fmt: skip
def test_as_many_processes_as_cores_and_memory_allow(cores: int, memory: int, goal: str, expected: int):
    assert workers(cores, memory, goal) == expected


def test_the_longest_go_first_and_unknown_ones_by_their_folders():
    dear, apart, java = "tests/kernels/test_exact.py::test", f"{APART[0]}[1]", "tests/runtime/test_new.py::test"
    cheap, quick, cheapest = (
        f"tests/{name}.py::test" for name in ("runtime/test_stream", "cli/test_new", "test_imports")
    )
    known = {"tests/kernels/test_exact.py": 900.0, "tests/runtime/test_stream.py": 2.0, "tests/test_imports.py": 0.0}
    tests = [cheapest, cheap, java, quick, apart, dear]
    assert sorted(tests, key=partial(turn, measured=known)) == [dear, apart, java, cheap, quick, cheapest]


@pytest.mark.parametrize("test", APART)
def test_what_goes_apart_is_a_slow_test(test: str):
    file, _, name = test.partition("::")
    assert together(f"{test}[a-b::c]") == f"{test}[a-b::c]"
    assert together(f"{file}::test_another[a]") == file
    assert re.search(rf"@pytest\.mark\.slow\n(@.*\n)*def {name}\(", (ROOT / file).read_text())
