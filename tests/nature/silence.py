"""How long a driver has been silent, and how much of that time its threads waited for a core.

On a machine with too much to do a driver may be silent because it does not run. The kernel counts how long each thread could
have run and had no core. That time does not count against a driver; a driver that sleeps has next to none of it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from tests.nature.processes import PROC, family

LOOK: Final = 5.0
"""Seconds from one look at the threads to the next; those that have ended in between are not counted."""
MOST: Final = 12
"""How many times its patience a driver is given in all: where every thread waits for a core, a hung one looks like the others."""


class Silence:
    """The silence of the processes of a driver, from now on."""

    def __init__(self, python: int) -> None:
        self._python = python
        self._began = self._looked = time.monotonic()
        self._known: dict[str, int] | None = None
        #: seconds for which threads have waited for a core, added up
        self.waited = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def is_over(self, patience: float) -> bool:
        """Return whether it has been silent for so many seconds in which it could have run; to be called over and over."""
        if time.monotonic() - self._looked > LOOK:
            self.look()
        return is_too_long(self.seconds, self.waited, patience)

    def look(self) -> None:
        """Add what each thread has waited since the last look; the first look only notes where they stand."""
        self._looked = time.monotonic()
        found = _waits(self._python)
        if self._known is not None:
            self.waited += sum(wait - self._known.get(thread, 0) for thread, wait in found.items()) / 1e9
        self._known = found

    def __str__(self) -> str:
        return f"for {self.seconds:.0f} s, in which its threads have waited {self.waited:.0f} s for a core"


def is_too_long(seconds: float, waited: float, patience: float) -> bool:
    """Return whether a silence of so many seconds, in which threads waited so long for a core, is longer than patience lasts.

    >>> is_too_long(301, 0, 300), is_too_long(301, 2, 300), is_too_long(4_000, 20_000, 300)
    (True, False, True)
    """
    return seconds - waited > patience or seconds > MOST * patience


def _waits(python: int) -> dict[str, int]:
    """Return the nanoseconds for which each thread of a driver has waited for a core so far, by its number."""
    found = {}
    for process in family(python).all:
        with suppress(OSError):
            for thread in (PROC / str(process) / "task").iterdir():
                with suppress(OSError):
                    found[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return found
