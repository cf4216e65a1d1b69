"""Log of a run for its report: one description, and one line per micro-batch.

A run that is resumed appends to the same log. A batch that Spark replays after a crash is logged twice; the later line
counts, as in the engine's ledger. The query does not need the log, so damage by a full disk or a crash is reported and
skipped.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from skypane.locations import whole
from skypane.metrics import BatchMetrics
from skypane.naming import shortened
from skypane.snapshots import through_json
from skypane.types import CheckpointError, ConfigError

Check: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Compares the description of a run with that of the run that resumes it."""


def _to_stderr(remark: str) -> None:
    sys.stderr.write(f"skypane: {remark}\n")


@dataclass(frozen=True)
class RunLog:
    """`run.json` and `metrics.jsonl` in one directory; `remark` is called with a text for each failed read or write."""

    directory: Path
    remark: Callable[[str], None] = _to_stderr

    @property
    def files(self) -> tuple[Path, Path]:
        return self._run, self._metrics

    @property
    def _metrics(self) -> Path:
        return self.directory / "metrics.jsonl"

    @property
    def _run(self) -> Path:
        return self.directory / "run.json"

    @property
    def _mark(self) -> Path:
        return self.directory / "running"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark the run as running until the context or the process ends, however it ends: the mark is a lock of the kernel.

        Where the file system has no locks, there is no mark.
        """
        with ExitStack() as held:
            with suppress(OSError):
                fcntl.flock(held.enter_context(self._mark.open("ab")), fcntl.LOCK_SH)
            yield

    @property
    def is_running(self) -> bool | None:
        """Whether a process of this machine runs it; None if that is not known, because no run has left a mark here."""
        try:
            with self._mark.open("rb") as mark:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        return False

    def begin(self, description: Mapping[str, Any], check: Check | None = None) -> bool:
        """Record the description of the run; return True if an earlier run is resumed.

        check   raises CheckpointError if a run of the first description cannot be resumed by one of the second, which is
                recorded then; None: they must be equal

        Raise CheckpointError, which names the difference, if the directory contains a run with another description, and
        ConfigError if it is not writable.
        """
        wanted = through_json(dict(description))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if not os.access(self.directory, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            known = self._described()
            if known is not None:
                (check or self._must_be_same)(known, wanted)
            if known != wanted:
                self._describe(wanted)
            return known is not None or self._metrics.exists()
        except OSError as error:
            raise ConfigError(
                f"cannot write to {shortened(str(self.directory))}: {error.strerror or error}; choose another folder"
            ) from error

    def _described(self) -> dict[str, Any] | None:
        """Return the description that is stored; None if there is none or it is damaged."""
        if not self._run.exists():
            return None
        try:
            described = json.loads(self._run.read_bytes())
        except ValueError:
            described = None
        if isinstance(described, dict):
            return described
        self.remark(
            f"{self._run} is damaged and was replaced; the settings were not compared with those of the first start"
        )
        return None

    def _describe(self, description: Mapping[str, Any]) -> None:
        with whole(self._run) as draft:
            draft.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")

    def _must_be_same(self, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        differing = [key for key in sorted(known.keys() | wanted.keys()) if known.get(key) != wanted.get(key)]
        if differing:
            key = differing[0]
            raise CheckpointError(
                f"{self.directory} contains a run with {key}={known.get(key)!r}, but this run has "
                f"{key}={wanted.get(key)!r}; use the same settings to resume it, another directory, or --fresh to start "
                f"over"
            )

    def append(self, metrics: BatchMetrics) -> None:
        """Append a line; if that fails, the run continues without it."""
        # The metrics of hundreds of inputs would be most of the log; the checkpoint has those of the last batches.
        line = json.dumps(metrics.to_json() | {"inputs": []}).encode() + b"\n"
        try:
            with self._metrics.open("ab") as log:
                # A line that a full disk has truncated must not become the beginning of this one.
                log.write(line if _ends_a_line(self._metrics) else b"\n" + line)
        except OSError as error:
            self.remark(f"batch {metrics.batch_id} was not written to {self._metrics}: {error.strerror or error}")

    def batches(self) -> tuple[BatchMetrics, ...]:
        """Return one entry per batch in order; damaged lines are skipped and reported to `remark`."""
        latest = {metrics.batch_id: metrics for metrics in self._readable()}
        return tuple(latest[batch] for batch in sorted(latest))

    def _readable(self) -> Iterator[BatchMetrics]:
        if not self._metrics.exists():
            return
        damaged = 0
        for line in self._metrics.read_bytes().splitlines():
            try:
                yield BatchMetrics.from_json(json.loads(line))
            except (ValueError, CheckpointError):
                damaged += 1
        if damaged:
            self.remark(f"{damaged} damaged line{'s' if damaged > 1 else ''} of {self._metrics} skipped")


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
