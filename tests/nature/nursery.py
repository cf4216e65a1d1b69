"""Drivers that are ready before they are needed: one runs, and the next has its Spark started."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

from tests.checkout import PYTHONPATH
from tests.java import options
from tests.nature.driver import BATCH, DONE, FAILED, STOPPED, Stand, Task, Wake, live
from tests.nature.processes import Family, family, is_there, orphans, strike
from tests.nature.silence import Silence
from tests.stacks import dumped

CONTEXT: Final = multiprocessing.get_context("forkserver")
ENVIRONMENT: Final = {
    "PYTHONPATH": PYTHONPATH,
    "SPARK_SUBMIT_OPTS": options(),
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
PATIENCE: Final = 300.0
"""Seconds until a process that says nothing, and waits for no core, is taken for hung."""


class HungError(Exception):
    """A process that has not sent what it should have sent."""


class Driver:
    """A driver process, and what it has sent."""

    def __init__(self, master: str, log: Path) -> None:
        self.log = log
        self._line, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=live, args=(theirs, master, log), daemon=True)
        self._process.start()
        theirs.close()
        #: the streams that it runs, by the names of their folders, and how many batches each has had since its start
        self.running: set[str] = set()
        self.batches: Counter[str] = Counter()
        #: when the last stream was started, and how long it has sent nothing
        self.began = time.monotonic()
        self.silence = Silence(self.python)

    @property
    def python(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def family(self) -> Family:
        return family(self.python)

    @property
    def is_there(self) -> bool:
        return is_there(self.python)

    def run(self, task: Task) -> None:
        """Have it run a stream beside those that it runs."""
        self._line.send(task)
        self.running.add(task.stream)
        self.batches[task.stream] = 0
        self.began = time.monotonic()
        self.silence = Silence(self.python)

    def request(self, what: Stand | Wake) -> None:
        """Have it do something to streams that it runs; one that has died does not."""
        with suppress(OSError):
            self._line.send(what)

    def received(self) -> tuple[str, str, Any] | None:
        """Return what it has sent since the last call, and of which stream; None if that is nothing."""
        with suppress(EOFError, OSError):
            if self._line.poll(0):
                kind, name, value = self._line.recv()
                self.silence = Silence(self.python)
                self.batches[name] += kind == BATCH
                if kind in {DONE, FAILED, STOPPED}:
                    self.running.discard(name)
                return kind, name, value
        return None

    def wait(self, meanwhile: Callable[[], object]) -> tuple[str, str, Any]:
        """Return what it says next, doing something else over and over until then; FAILED, of no stream, if it dies first."""
        silence = Silence(self.python)
        while (received := self.received()) is None:
            if not self.is_there:
                self.running.clear()
                return FAILED, "", (False, "it has died")
            self.bear(silence)
            meanwhile()
            time.sleep(0.01)
        return received

    def bear(self, silence: Silence, what: str = "has sent nothing", patience: float = PATIENCE) -> None:
        """Raise HungError once it has been silent for too long; the message names the file that shows what its threads do."""
        if silence.is_over(patience):
            raise HungError(f"a driver {what} {silence}: {dumped(self.python, self.log)}")

    def end_orphans(self) -> None:
        """Kill workers whose parent was killed, and wait until they are gone, so that Java can be stopped and continued.

        Spark's request to end the parent makes Java close the parent's pipes, and a thread of Java still reads one of them as
        long as such a worker holds its other end. Linux restarts this read when the process continues, with the number of the
        closed file, which may have become a connection to Python by then: the thread would take a message from it, and the
        batch would wait forever. docs/reliability.md names this limit.
        """
        _kill(orphans(self.python))

    def end(self) -> None:
        """Kill all of it, and wait until it is gone."""
        _kill(self.family.all)
        self._process.join()
        self._line.close()


def _kill(processes: tuple[int, ...]) -> None:
    for process in processes:
        strike(process)
    for process in processes:
        while is_there(process):
            time.sleep(0.01)


class Nursery:
    """Starts drivers ahead of their time, if it is known that more are needed: `most` of them, or None for any number."""

    def __init__(self, folder: Path, preloaded: Mapping[str, str]) -> None:
        self._folder, self._made = folder, 0
        self.most: int | None = None
        self._ready: deque[tuple[str, Driver]] = deque()
        _start_server({**ENVIRONMENT, **preloaded})

    def take(self, master: str) -> Driver:
        """Return a driver that is up, or about to be, and start the one after it."""
        while self._ready and self._ready[0][0] != master:
            self._ready.popleft()[1].end()
        driver = self._ready.popleft()[1] if self._ready else self._start(master)
        if self.most is None or self._made < self.most:
            self._ready.append((master, self._start(master)))
        return driver

    def _start(self, master: str) -> Driver:
        self._made += 1
        return Driver(master, self._folder / f"driver-{self._made:04}.log")

    def close(self) -> None:
        while self._ready:
            self._ready.popleft()[1].end()


def _start_server(environment: Mapping[str, str]) -> None:
    """Start the process that drivers are forked from, with an environment that this one does not have."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        CONTEXT.set_forkserver_preload(["tests.nature.driver", "tests.nature.receiving"])
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
