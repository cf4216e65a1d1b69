"""Run a command and its child processes with a memory limit of the kernel: a cgroup of version 1, on Linux, as root.

The kernel kills a process of the group that would exceed the limit. Processes outside the group are not affected.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from skypane.runtime.resources import own_group

_ROOT = Path("/sys/fs/cgroup/memory")
PATIENCE = 60.0
"""Seconds that processes have to end when they are killed."""
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def size_of(text: str) -> int:
    """Return the bytes of a text such as 1.5GiB or 1536MiB; raise ValueError if it is none.

    >>> size_of("1.5GiB") == size_of("1536MiB") == 3 << 29
    True
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(MiB|GiB)", text)
    if match is None:
        raise ValueError(f"need a size such as 2GiB or 1536MiB, got {text!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def why_not() -> str:
    """Return why no process can be held to a limit here; nothing, if one can."""
    if not (_ROOT / "memory.limit_in_bytes").exists():
        return (
            f"--memory needs cgroups of version 1 ({_ROOT}), as Linux may have them: elsewhere run the command without it "
            "where there is less memory, in a container or in a scope of systemd's (systemd-run --scope -p MemoryMax=2G)"
        )
    own = _ROOT / own_group("memory")
    if not os.access(own, os.W_OK):
        return f"--memory makes a group in {own}, which only root may do"
    return ""


class Bounded:
    """A group for processes that have no more memory than `limit` bytes together; with it end those that are left."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._folder = _ROOT / own_group("memory") / f"skypane-bounded-{os.getpid()}"

    def __enter__(self) -> Self:
        self._folder.mkdir()
        (self._folder / "memory.limit_in_bytes").write_text(str(self._limit))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        until = time.monotonic() + PATIENCE
        while not self._removed():
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{self._folder} does not end, with the processes {self._members()}: remove it by rmdir"
                )
            time.sleep(0.05)

    def _removed(self) -> bool:
        """End the processes that are left; return whether the group could be removed: what has ended leaves it a while later."""
        for process in self._members():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            self._folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` in the group: its shell joins, and then becomes the command."""
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._folder / "cgroup.procs"), *command]

    @property
    def killed(self) -> int:
        """How many processes of the group the kernel has ended for want of memory."""
        lines = (self._folder / "memory.oom_control").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def _members(self) -> list[int]:
        return [int(line) for line in (self._folder / "cgroup.procs").read_text().split()]
