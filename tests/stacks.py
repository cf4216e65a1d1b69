"""What the threads of a driver do, Python's and Java's, and what they wait for: written beside its log when it hangs.

A driver calls register() first; its Java writes what its threads do to where its output goes, which is the log or, with
TO_STDERR, the log of errors.
"""

from __future__ import annotations

import faulthandler
import signal
import time
from pathlib import Path
from typing import Final

from tests.nature.processes import PROC, family, strike
from tests.waits import waits

SECONDS: Final = 60.0
"""How long a process may take to write: longer than it does on a machine on which others wait, too."""
TO_STDERR: Final = "-XX:+DisplayVMOutputToStderr"
_PYTHON: Final = b" in <module>\n"
_JAVA: Final = b"JNI global refs"
"""What stands at the end of Python's list of threads, which is the outermost call of the main thread, and of Java's."""


def register() -> None:
    """Have this process write what its threads do to stderr at SIGUSR1."""
    faulthandler.register(signal.SIGUSR1)


def dumped(python: int, log: Path, seconds: float = SECONDS) -> Path:
    """Have a driver and its Java write what their threads do; return the file that holds it: beside `log`, to which they write."""
    begun, javas_there = log.stat().st_size, family(python).java
    waited = "".join(map(waits, (python, *javas_there)))  # before signals wake threads
    asked = [(python, signal.SIGUSR1), *((java, signal.SIGQUIT) for java in javas_there)]
    asked = [(process, number) for process, number in asked if _catches(process, number) and strike(process, number)]
    javas = sum(number == signal.SIGQUIT for _, number in asked)
    until = time.monotonic() + seconds
    while not _is_whole(written := log.read_bytes()[begun:], len(asked) - javas, javas) and time.monotonic() < until:
        time.sleep(0.05)
    path = log.with_suffix(".threads")
    path.write_bytes((written or b"none of its processes has answered\n") + b"\n" + waited.encode())
    return path


def _is_whole(written: bytes, pythons: int, javas: int) -> bool:
    """Return whether it has the threads of so many processes; Python writes the main one last."""
    return written.count(_PYTHON) >= pythons and written.count(_JAVA) >= javas


def _catches(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal, which would end it else."""
    try:
        lines = (PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)
