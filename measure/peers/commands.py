"""A program of others as a process: its wall time, and the CPU time of all its threads."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from measure.results.record import Times


class Command:
    """A process whose end is waited for; the clock starts with the process, and again with `begin()`."""

    def __init__(self, command: Sequence[str | Path], folder: Path, given: bytes = b"") -> None:
        self._command, self._folder, self._given = list(map(str, command)), folder, given
        self.name = self._command[0]

    def __enter__(self) -> Self:
        # Files instead of pipes, which the process could fill.
        self._output = tempfile.TemporaryFile()
        self._input = tempfile.TemporaryFile()
        self._input.write(self._given)
        self._input.seek(0)
        self.begin()
        self._process = subprocess.Popen(  # noqa: S603 - a program that was built for the benchmark
            self._command, cwd=self._folder, stdin=self._input, stdout=self._output, stderr=subprocess.STDOUT
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        self._text = self.output()
        self._output.close()
        self._input.close()

    def begin(self) -> None:
        """Start the clock."""
        self._began = time.perf_counter()

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        if self._process.returncode is not None:
            return False
        # Without taking its end away from ended().
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def ended(self) -> Times:
        """Wait for the end and return the times; raise RuntimeError if the process fails."""
        _, status, usage = os.wait4(self._process.pid, 0)
        wall = time.perf_counter() - self._began
        self._process.returncode = code = os.waitstatus_to_exitcode(status)
        if code:
            raise RuntimeError(f"{self.name} ended with {code}: {self.output()[-400:]}")
        return Times(wall, usage.ru_utime + usage.ru_stime)

    def output(self) -> str:
        """Return what the process has written so far, to both of its outputs."""
        if self._output.closed:
            return self._text
        # Not by seek(), which would move the place at which the process writes.
        descriptor = self._output.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def timed(command: Sequence[str | Path], folder: Path) -> Times:
    """Run a program to its end."""
    with Command(command, folder) as running:
        return running.ended()
