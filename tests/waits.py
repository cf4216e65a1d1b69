"""What the kernel knows of a process that hangs: in what each of its threads waits, and which bytes wait in its sockets.

Stacks show both sides of a connection in a read, whether a message was lost, nobody was woken for it, or who was woken waits for a lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.nature.processes import PROC

_LISTENING: Final = "0A"


def waits(process: int) -> str:
    """Return a line for each thread of a process, and for each TCP connection."""
    return "".join(f"{process} {line}\n" for line in (*_threads(process), *_connections(process)))


def _threads(process: int) -> Iterator[str]:
    for thread in _listed(process, "task"):
        name, where, call, stat = (_read(thread / what) for what in ("comm", "wchan", "syscall", "stat"))
        state = stat.rpartition(") ")[2][:1]
        yield f"thread {thread.name} ({name}) is in state {state}, waits in {where}, system call {call}"


def _connections(process: int) -> Iterator[str]:
    own = {_target(file) for file in _listed(process, "fd")}
    for table in ("tcp", "tcp6"):
        for line in _read(PROC / str(process) / "net" / table).splitlines()[1:]:
            _, here, there, state, queues, *_, inode = line.split()[:10]
            if f"socket:[{inode}]" in own and state != _LISTENING:
                unsent, unread = (int(part, 16) for part in queues.split(":"))
                yield f"connection of port {_port(here)} to {_port(there)}: {unread} bytes unread, {unsent} unsent"


def _listed(process: int, what: str) -> list[Path]:
    with suppress(OSError):
        return sorted((PROC / str(process) / what).iterdir(), key=lambda path: int(path.name))
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"{error.strerror}"


def _target(file: Path) -> str:
    with suppress(OSError):
        return str(file.readlink())
    return ""


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
