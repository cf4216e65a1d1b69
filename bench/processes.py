"""The processes of a run, this one and all that it has started: Java with its Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
        except OSError:  # it has ended meanwhile
            continue


def peaks() -> dict[str, int]:
    """Return the most bytes held since forget_peaks(): by this process ("driver"), Java, and the largest Python worker."""
    most = {"driver": 0, "java": 0, "worker": 0}
    for process, _ in _family():
        try:
            lines = dict(line.split(":", 1) for line in (_PROC / str(process) / "status").read_text().splitlines())
            kind = "driver" if process == _own() else "java" if "java" in lines["Name"] else "worker"
            most[kind] = max(most[kind], int(lines["VmHWM"].split()[0]) * 1024)
        except (OSError, KeyError):
            continue
    return most


_PROC = Path("/proc")


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
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        found[int(entry.name)] = fields
    todo = [_own()]
    while todo:
        process = todo.pop()
        if process in found:
            yield process, found[process]
        todo += children.get(process, [])
