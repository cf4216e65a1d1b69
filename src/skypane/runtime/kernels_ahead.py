"""The kernels that a query needs, loaded or compiled while Spark starts the query.

    python -m skypane.runtime.kernels_ahead FAMILY ...

Those that are not compiled yet are compiled by another process, because a compilation would hold up the threads of this one.
A kernel that a batch calls before that is compiled where it is called; no kernel is compiled twice (kernels/turns.py). The
process ends with the one that has started it, however that ends: it watches its standard input, which that one holds open.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Final

from skypane.kernels.families import EVERY
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.resources import import_path

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Helper:
    """A process, and the families of kernels that it compiles."""

    process: subprocess.Popen[bytes]
    families: frozenset[str]

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


_HELPERS: Final[list[_Helper]] = []
_LOADER: Final = "skypane kernels"
"""The name of a thread that loads kernels."""


def prepare_kernels(families: Collection[str]) -> None:
    """Load the kernels of these families in the background, or let another process compile them; return at once.

    Where there is no folder to keep them in, another process is of no use: they are compiled here, before this returns.
    """
    # They load Numba, which a process that only describes jobs does not need.
    from skypane.kernels import warming  # noqa: PLC0415
    from skypane.kernels.compiled import UNCACHED  # noqa: PLC0415

    if UNCACHED:
        with interrupted_afterwards():
            warming.warm(log.warning, families)
        return
    if not warming.missing(families):
        # No daemon: the end of the process waits for it, as code of LLVM does not survive that its thread is cut off.
        Thread(target=warming.warm, kwargs={"families": families}, name=_LOADER).start()
        return
    if any(helper.runs and helper.families >= set(families) for helper in _HELPERS):
        return
    log.warning(
        "compiling kernels in another process, once per installation; a batch that needs one earlier waits for it"
    )
    try:
        _begin(frozenset(families))
    except OSError as error:  # no process is left, or no memory: each kernel is compiled by its first call
        log.info("the process that compiles kernels cannot start: %s", error)


def await_loaded() -> None:
    """Wait until no thread loads kernels: a fork would inherit locks of LLVM that nobody there releases."""
    for thread in enumerate_threads():
        if thread.name == _LOADER:
            thread.join()


def _begin(families: frozenset[str]) -> None:
    if not _HELPERS:
        atexit.register(_end_all)
    process = subprocess.Popen(  # noqa: S603 - this module
        [sys.executable, "-P", "-m", __name__, *(family for family in EVERY if family in families)],
        env=os.environ | {"PYTHONPATH": import_path()},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal is for the query
    )
    _HELPERS.append(_Helper(process, families))


def _end_all() -> None:
    while _HELPERS:
        _HELPERS.pop().end()


def main(families: Collection[str]) -> None:
    """Compile the kernels of these families."""
    from skypane.kernels.warming import warm  # noqa: PLC0415 - not while a stream is described, as above

    Thread(target=_end_with_the_other, daemon=True).start()
    warm(families=families)


def _end_with_the_other() -> None:
    """Wait until nobody holds standard input open, and end this process."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
