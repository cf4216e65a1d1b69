"""How tests are shared out among processes: how many there are, which files go first, and which tests go apart."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from skypane.runtime.resources import GIB

_MEMORY: Final = 4 * GIB
"""Bytes of a process of tests: its JVM, its Python workers, and the drivers that a test of recovery starts."""

LONG: Final = (
    "runtime/test_recovery.py",
    "test_snippets.py",
    "runtime/test_stream.py",
    "runtime/test_zones.py",
    "measure/test_admission.py",
    "test_demo.py",
    "runtime/test_continuous_recovery.py",
    "runtime/test_elastic.py",
    "papers/test_figures.py",
    "operators/test_laws.py",
    "differential/test_cases.py",
)
"""The files that take half a minute or more beside another process, the longest one first: `--table=file` shows them."""

APART: Final = (
    "tests/runtime/test_recovery.py::test_many_kills_at_random_moments",
    "tests/differential/test_spark.py::test_spark_answers_many_random_cases_as_the_definition_does",
    "tests/runtime/test_recovery.py::test_kills_at_random_moments_of_a_cluster",
    "tests/runtime/test_every_start.py::test_three_drivers_do_too",
    "tests/runtime/test_continuous_recovery.py::test_many_kills_at_random_moments",
    "tests/nature/test_nature.py::test_each_kind_of_stream_survives_kills",
    "tests/chaos/test_kills.py::test_a_stream_survives_many_kills",
    "tests/runtime/test_recovery.py::test_rows_that_are_held_survive_kills_at_exact_places",
)
"""Slow tests, the longest one first, that take minutes: they need not run in one process with the others of their files.

Each of their parameters goes to a process by itself: the files as a whole would be left over at the end of `make slow`.
"""

LONG_IF_SLOW: Final = (
    "cpus/test_cpus.py",
    "runtime/test_recovery.py",
    "runtime/test_continuous_recovery.py",
    "runtime/test_early_recovery.py",
    "runtime/test_amended_recovery.py",
    "runtime/test_every_start.py",
    "runtime/test_zones.py",
    "test_tutorials.py",
    "docs/test_notebooks.py",
    "test_guides.py",
)
"""The files of which the other slow tests take minutes, the longest ones first."""


class Sharing(LoadFileScheduling):  # type: ignore[misc]
    """Shares out tests file by file, except those that go apart."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)


def together(nodeid: str) -> str:
    """Return what names those tests that one process has to run: a file, or a test that goes apart."""
    return nodeid if _without_parameters(nodeid) in APART else nodeid.partition("::")[0]


def _without_parameters(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def workers(cores: int, memory: int) -> int:
    """Return how many processes a machine with so many bytes of memory has room for."""
    return max(1, min(cores, memory // _MEMORY))


def turn(nodeid: str, *, slow: bool) -> tuple[int, int]:
    """Return when a test's turn comes, in a run of slow tests or of the others: those that go apart, then those of long files.

    So none is left over at the end; else they come in pytest's order.
    """
    test, long = _without_parameters(nodeid), LONG_IF_SLOW if slow else LONG
    file = test.partition("::")[0].removeprefix("tests/")
    return (
        APART.index(test) if test in APART else len(APART),
        long.index(file) if file in long else len(long),
    )
