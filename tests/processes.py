"""How tests are shared out among processes: how many there are, and which files go first."""

from __future__ import annotations

from typing import Final

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


def workers(cores: int, memory: int) -> int:
    """Return how many processes a machine with so many bytes of memory has room for."""
    return max(1, min(cores, memory // _MEMORY))


def turn(file: str) -> int:
    """Return when a file's turn comes: long ones first, so that none is left over at the end; else in pytest's order."""
    return LONG.index(file) if file in LONG else len(LONG)
