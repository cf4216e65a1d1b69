"""The processes of a driver, by what they are: read from /proc, so on Linux only."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


@dataclass(frozen=True)
class Family:
    """A driver's processes, by id: its Java, that of executors, the parents of Python workers, and these."""

    python: int
    java: tuple[int, ...]
    executors: tuple[int, ...]
    daemons: tuple[int, ...]
    workers: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return (self.python, *self.java, *self.executors, *self.daemons, *self.workers)


def family(python: int) -> Family:
    """Return the processes that descend from a driver's Python."""
    children = _children()
    below = _below(python, children)
    commands = {process: _command(process) for process in below}
    executors = {process for process, command in commands.items() if "CoarseGrainedExecutorBackend" in command}
    daemons = {
        process
        for process, command in commands.items()
        if f"-m {DAEMON}" in command and commands.get(_parent(process)) != command
    }
    workers = {child for process in daemons for child in children.get(process, ())}
    java = {process for process, command in commands.items() if "org.apache.spark.deploy.SparkSubmit" in command}
    return Family(python, *(tuple(sorted(some)) for some in (java - executors, executors, daemons, workers)))


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, directly or not; none where there is no /proc."""
    return _below(process, _children())


DAEMON: Final = "tests.nature.daemon"


def orphans(python: int) -> tuple[int, ...]:
    """Return the Python workers in a driver's session whose parent has died."""
    daemons = set(family(python).daemons)
    children = {child for process, found in _children().items() if process in daemons for child in found}
    workers = {
        process for process in _processes() if f"-m {DAEMON}" in _command(process) and _session(process) == python
    }
    return tuple(sorted(workers - children - daemons))


def strike(process: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; return whether the process was there."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
        return True
    return False


def is_there(process: int) -> bool:
    """Return whether a process lives: one that is dead and not waited for does not."""
    return stat(process)[:1] not in ([], ["Z"])


def _below(process: int, children: dict[int, list[int]]) -> list[int]:
    below, left = list[int](), [process]
    while left:
        found = children.get(left.pop(), [])
        below += found
        left += found
    return below


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for process in _processes():
        found[_parent(process)].append(process)
    return found


def _processes() -> Iterator[int]:
    return (int(path.name) for path in PROC.glob("[0-9]*"))


def _parent(process: int) -> int:
    fields = stat(process)
    return int(fields[1]) if fields else 0


def _session(process: int) -> int:
    fields = stat(process)
    return int(fields[3]) if fields else 0


def stat(process: int) -> list[str]:
    """Return the fields from the state on: what stands before them, the name, may hold anything."""
    with suppress(OSError):
        return (PROC / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def _command(process: int) -> str:
    with suppress(OSError):
        return (PROC / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
