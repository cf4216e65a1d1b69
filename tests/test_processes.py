"""How tests are shared out among processes."""

from __future__ import annotations

import re
from functools import partial

import pytest
from tests.checkout import ROOT
from tests.processes import APART, needs_java, together, turn, with_java, workers

from skypane.runtime.resources import GIB


@pytest.mark.parametrize(
    ("cores", "memory", "expected"), [(2, 24 * GIB, 3), (8, 10 * GIB, 2), (1, GIB, 1), (4, GIB, 1), (8, 64 * GIB, 12)]
)
def test_more_processes_than_cores_if_memory_allows(cores: int, memory: int, expected: int):
    assert workers(cores, memory) == expected


def test_as_many_with_a_session_as_cores_all_where_tests_wait_and_half_for_the_few_of_pages():
    assert [with_java(2, goal) for goal in ("test", "", "night or slow", "pages")] == [2, 2, 3, 1]
    assert with_java(1, "pages") == 1


@pytest.mark.parametrize(("file", "expected"), [
    ("runtime/test_stream.py", True), ("engine/test_same_on_spark.py", True), ("test_demo.py", True),
    ("runtime/sinks/test_open_tables.py", False), ("chaos/test_kills.py", False), ("operators/test_laws.py", False),
])  # fmt: skip
def test_what_takes_a_session_needs_java(file: str, expected: bool):
    assert needs_java(f"tests/{file}") is expected


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
