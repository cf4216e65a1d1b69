"""Processes that import a module of kernels, forked from one that has loaded Numba, which else takes most of their time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.checkout import PYTHONPATH, ROOT


class Forking:
    """A process that forks others: each begins as a new one would, with nothing compiled and a cache of its own."""

    def __enter__(self) -> Self:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.kernels.forking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PYTHONPATH},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._parent.communicate()

    def imported(
        self, module: str, place: Path, cache: Path | str, *, killed: bool = False, times: int = 1
    ) -> tuple[int, str]:
        """Import a module of a folder or of a zip file in a process of its own; return its exit status, and what it prints.

        cache    the folder in which kernels are cached; "": beside their sources
        killed   whether KILLED is in its environment
        times    in how many processes at once; the status is that of any that fails
        """
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps([module, str(place), str(cache), killed, times]) + "\n")
        self._parent.stdin.flush()
        status, printed = json.loads(self._parent.stdout.readline())
        return int(status), str(printed)


def main() -> None:
    """Fork a process for each line that comes."""
    import numba  # noqa: PLC0415 - those who ask need none of it

    import skypane.kernels.compiled  # noqa: F401, PLC0415 - as above

    numba.njit(lambda x: x + 1.0)(1)  # makes the compiler ready
    for line in sys.stdin:
        module, place, cache, killed, times = json.loads(line)
        reading, writing = os.pipe()
        children = []
        for _ in range(times):
            children.append(os.fork())
            if children[-1] == 0:
                os.close(reading)
                os.dup2(writing, 1)
                os.environ |= {"KILLED": "yes"} if killed else {}
                _import(module, place, cache)
        os.close(writing)
        with os.fdopen(reading) as printed:
            text = printed.read()
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps([max(statuses, key=abs), text]), flush=True)


def _import(module: str, place: str, cache: str) -> Any:
    """Import the module, and end."""
    import numba  # noqa: PLC0415 - as above

    numba.config.CACHE_DIR = cache
    sys.dont_write_bytecode = True  # which would be of a text that is changed within a second
    sys.path.insert(0, place)
    status = 1
    try:
        __import__(module)
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
