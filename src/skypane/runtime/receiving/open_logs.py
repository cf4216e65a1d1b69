"""The logs of topics: as many are open at once as this process may have files for, those that were used last."""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from skypane.runtime.receiving.intake import Intake

_FILES = 4
"""Files that an open log has."""
_OTHERS = 256
"""Files that are left for connections and other inputs."""
_ENOUGH = 1 << 16
_FEWEST, _MOST = 8, 4096


def most_open() -> int:
    """Return how many logs of topics this process may have open: half of its files are left to others."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST
    return min(max((files - _OTHERS) // (2 * _FILES), _FEWEST), _MOST)


def more_files() -> None:
    """Let this process have as many open files as it may, within reason."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if most == resource.RLIM_INFINITY else min(most, _ENOUGH)
    if files != resource.RLIM_INFINITY and files < wanted:
        with suppress(ValueError, OSError):  # not every system lets all that it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class OpenLogs:
    """The way into logs by name, opened when something comes for them.

    opened  opens one
    most    how many may be open at once
    """

    def __init__(self, opened: Callable[[str], Intake], most: int) -> None:
        self._opened = opened
        self._most = most
        self._intakes: OrderedDict[str, Intake] = OrderedDict()

    def __len__(self) -> int:
        return len(self._intakes)

    def of(self, name: str) -> Intake | None:
        """Return the way into a log; None if it cannot be opened before another one is written."""
        if name not in self._intakes:
            if len(self._intakes) >= self._most and not self._closed_one():
                return None
            self._intakes[name] = self._opened(name)
        self._intakes.move_to_end(name)
        return self._intakes[name]

    async def close(self) -> None:
        """Write what was handed in, and let go of all logs."""
        while self._intakes:
            _, intake = self._intakes.popitem()
            await intake.close()

    def _closed_one(self) -> bool:
        """Close the log that nothing has come for for longest, of those that have nothing to write."""
        for name, intake in self._intakes.items():
            if intake.idle:
                intake.log.close()
                del self._intakes[name]
                return True
        return False
