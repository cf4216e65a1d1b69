"""Drivers that are forked from a process that has loaded what all of them need, which else takes half of a start's CPU time.

Run as a program, with the module of the drivers and the number of a socket as its arguments, it is that process: it forks, and
waits for a driver, as it is requested, until nobody can request any more. A driver leads a process group of its own. The
parents of its Python workers come from the same process (parent_of_workers.py), and end as PySpark's own do.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

import pandas as pd  # noqa: F401 - workers load it with the first rows
import pyspark.daemon
import pyspark.worker
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.parent_of_workers import SOCKET

from skypane import kernels

_MOST: Final = 4_096
"""Bytes of a request or a response."""


class Parent:
    """The process that drivers are forked from, which are of a `module` that has a function main()."""

    def __init__(self, module: str) -> None:
        self._line, theirs = socket.socketpair()
        self._folder = tempfile.mkdtemp(prefix="forks-")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.runtime.forked", module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": PYTHONPATH, SOCKET: f"{self._folder}/socket"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def fork(self, master: str, temporary: Path, errors: IO[bytes]) -> Forked:
        """Return a new driver, which takes `temporary` for its temporary files."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            request = json.dumps(["fork", master, str(temporary)]).encode()
            socket.send_fds(self._line, [request], [theirs_in, theirs_out, errors.fileno()])
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return Forked(self, self._response(), os.fdopen(ours_in, "w"), os.fdopen(ours_out))

    def status(self, driver: int, *, wait: bool) -> int | None:
        """Return how a driver has ended, or minus the signal that has ended it; None if it lives."""
        self._line.send(json.dumps(["wait" if wait else "look", driver]).encode())
        status: int | None = self._response()
        return status

    def _response(self) -> Any:
        received = self._line.recv(_MOST)
        assert received, "the process that forks drivers has ended"
        return json.loads(received)

    def close(self) -> None:
        self._line.close()
        self._process.wait()
        shutil.rmtree(self._folder)


class Forked:
    """A driver: what subprocess.Popen has of a process that it has started."""

    def __init__(self, parent: Parent, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        self._parent = parent
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.status(self.pid, wait=False)
        return self.returncode

    def wait(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.status(self.pid, wait=True)
        return self.returncode

    def kill(self) -> None:
        """Kill it, if nobody knows yet that it has ended: until then its number is that of no other process."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def main(module: str, line: int) -> None:
    drivers = import_module(module)
    kernels.warm()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=line) as requests, socket.socket(socket.AF_UNIX) as workers:
        workers.bind(os.environ[SOCKET])
        workers.listen()
        work = _serve(requests, workers, drivers.main)
    if work is not None:
        work()


def _serve(requests: socket.socket, workers: socket.socket, drive: Callable[[], None]) -> Callable[[], None] | None:
    """Do what is requested; return in a process that was forked, with what that has to do, and when all is done."""
    while True:
        ready, _, _ = select.select([requests, workers], [], [])
        if workers in ready:
            line, _ = workers.accept()
            if _is_orphan():
                return partial(_be_parent_of_workers, line)
            line.close()
            continue
        content, files, _, _ = socket.recv_fds(requests, _MOST, 3)
        match json.loads(content or "[]"):
            case ["fork", master, temporary]:
                if not (driver := os.fork()):
                    os.setsid()
                    _take(files, os.environ | {"TMPDIR": temporary})
                    sys.argv[1:] = [master]
                    return drive
                for file in files:
                    os.close(file)
                response: int | None = driver
            case ["wait" | "look" as how, int(driver)]:
                ended, status = os.waitpid(driver, 0 if how == "wait" else os.WNOHANG)
                response = os.waitstatus_to_exitcode(status) if ended else None
            case _:
                return None
        with suppress(BrokenPipeError):
            requests.send(json.dumps(response).encode())


def _is_orphan() -> bool:
    """Fork a process that nobody has to wait for; return whether this is it."""
    if child := os.fork():
        os.waitpid(child, 0)
        return False
    if os.fork():
        os._exit(0)
    return True


def _be_parent_of_workers(line: socket.socket) -> None:
    """Be what Spark takes the program at the other end of the line for; that ends when the line does, with this process."""
    _, files, _, _ = socket.recv_fds(line, 1, 3)
    with line.makefile("rb") as content:
        environment = json.load(content)
    _take(files, environment)
    pyspark.daemon.manager()


def _take(files: list[int], environment: dict[str, str]) -> None:
    """Have other standard files and another environment."""
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # Python reads TMPDIR once


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
