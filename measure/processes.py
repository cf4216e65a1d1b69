"""The processes of a run: this one and all that it has started, such as Java with its Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

TICKS = 100
"""Of a CPU second in /proc."""

_USED: dict[tuple[int, str], float] = {}
"""CPU seconds of each process ever seen, by its number and its start: what a worker that has ended has used still counts."""


def cpu_seconds() -> float:
    """Return the CPU seconds that all of them have used."""
    for process, fields in _family():
        _USED[process, fields[19]] = sum(map(int, fields[11:13])) / TICKS
    return sum(_USED.values())


def forget_peaks() -> None:
    """Begin anew to note the most memory that each of them has held."""
    for process, _ in _family():
        try:
            (_PROC / str(process) / "clear_refs").write_text("5")
        except OSError:  # the process has ended meanwhile
            continue


def peaks() -> dict[str, int]:
    """Return the most bytes held since forget_peaks(): by this process ("driver"), Java, and the largest Python worker."""
    most = {"driver": 0, "java": 0, "worker": 0}
    for kind, status in _statuses():
        if "VmHWM" in status:
            most[kind] = max(most[kind], _bytes(status["VmHWM"]))
    return most


class Watch:
    """Looks every 50 ms at what memory all processes have for themselves.

    most       the most bytes by kind of process, and of all at once
    together   the bytes of each kind when all together had most
    """

    def __init__(self) -> None:
        self.most = {"driver": 0, "java": 0, "workers": 0, "all": 0}
        self.together = dict(self.most)
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            held = {"driver": 0, "java": 0, "workers": 0}
            for kind, status in _statuses():
                if "RssAnon" in status:
                    held["workers" if kind == "worker" else kind] += _bytes(status["RssAnon"])
            held["all"] = sum(held.values())
            self.most = {kind: max(most, held[kind]) for kind, most in self.most.items()}
            if held["all"] > self.together["all"]:
                self.together = held


def resident_bytes(process: int | None = None) -> int:
    """Return the bytes of memory that a process holds, by default this one; raise OSError if it has ended."""
    pages = (_PROC / str(process or "self") / "statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def family() -> list[int]:
    """Return the numbers of this process and of all that it has started."""
    return [process for process, _ in _family()]


def parents() -> dict[int, int]:
    """Return the number of each process of the family, with that of the process that has started it."""
    return {process: int(fields[1]) for process, fields in _family()}


_PROC = Path("/proc")


def _statuses() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield of each process what it is, "driver", "java" or "worker", and what /proc says of its memory, if it has any left.

    What the driver or Java starts has the memory and the command line of its parent until it becomes another program, and
    would count twice: it is left out until then. Python workers stay what their daemon is, and count.
    """
    kinds: dict[int, str] = {}
    commands: dict[int, bytes] = {}
    for process, fields in _family():
        parent = int(fields[1])
        try:
            command = (_PROC / str(process) / "cmdline").read_bytes()
            lines = (_PROC / str(process) / "status").read_text().splitlines()
        except OSError:  # the process has ended meanwhile
            continue
        if kinds.get(parent, "worker") != "worker" and command == commands[parent]:
            continue
        status = dict(line.split(":", 1) for line in lines)
        kinds[process] = "driver" if process == _own() else "java" if "java" in status["Name"] else "worker"
        commands[process] = command
        yield kinds[process], status


def _bytes(kibibytes: str) -> int:
    """Return the bytes that a line of /proc/PID/status says, such as " 412 kB"."""
    return int(kibibytes.removesuffix("kB")) * 1024


def _own() -> int:
    return int((_PROC / "self").resolve().name)


def _family() -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each process and its figures from /proc, from the state on."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        found[int(entry.name)] = fields
    todo = [_own()]
    while todo:
        process = todo.pop()
        if process in found:
            yield process, found[process]
        todo += children.get(process, [])
