"""The logs of topics: the most recently used ones stay open, within the process's limit of open files."""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from skypane.runtime.receiving.group_commit import GroupCommit

_FILES = 4
"""Open files of an open log."""
_OTHERS = 256
"""Open files reserved for connections and other inputs."""
_ENOUGH = 1 << 16
_FEWEST, _MOST = 8, 4096


def most_open() -> int:
    """Return how many logs of topics this process may have open; half of its files are left for other uses."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST
    return min(max((files - _OTHERS) // (2 * _FILES), _FEWEST), _MOST)


def most_clients(ports: int) -> int:
    """Return how many clients each of so many ports may have at once; three quarters of the files are left for other uses."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if files == resource.RLIM_INFINITY else max(files // (4 * ports), 1)


def more_files() -> None:
    """Raise this process's limit of open files to the permitted maximum, at most _ENOUGH."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if most == resource.RLIM_INFINITY else min(most, _ENOUGH)
    if files != resource.RLIM_INFINITY and files < wanted:
        with suppress(ValueError, OSError):  # some systems permit less than their stated maximum
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class OpenLogs:
    """Intakes of logs by name, opened on demand.

    opened  opens the intake of a log
    most    the largest number of open logs
    """

    def __init__(self, opened: Callable[[str], GroupCommit], most: int) -> None:
        self._opened = opened
        self._most = most
        self._intakes: OrderedDict[str, GroupCommit] = OrderedDict()

    def __len__(self) -> int:
        return len(self._intakes)

    def of(self, name: str) -> GroupCommit | None:
        """Return the intake of a log; None if it cannot be opened until another log has written its lines."""
        if name not in self._intakes:
            if len(self._intakes) >= self._most and not self._closed_one():
                return None
            self._intakes[name] = self._opened(name)
        self._intakes.move_to_end(name)
        return self._intakes[name]

    async def close(self) -> None:
        """Write all lines that were handed in, and close all logs."""
        while self._intakes:
            _, intake = self._intakes.popitem()
            await intake.close()

    def _closed_one(self) -> bool:
        """Close the least recently used log that has nothing to write; return False if there is none."""
        for name, intake in self._intakes.items():
            if intake.idle:
                intake.log.close()
                del self._intakes[name]
                return True
        return False
