"""What a run leaves behind for its report: one description, and one line per micro-batch.

A run that is interrupted and resumed writes on in the same log. A batch that Spark replays after a crash is logged
twice; the later line counts, as it does in the engine's ledger. The log is for people: what a full disk or a crash has
damaged in it is said and passed over, because the query itself needs none of it to go on.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skypane.metrics import BatchMetrics
from skypane.naming import shortened
from skypane.places import whole
from skypane.types import CheckpointError, ConfigError


def _to_stderr(remark: str) -> None:
    sys.stderr.write(f"skypane: {remark}\n")


@dataclass(frozen=True)
class RunLog:
    """`run.json` and `metrics.jsonl` in one directory; `remark` is told what of them cannot be read or written."""

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

    def begin(self, description: Mapping[str, Any]) -> bool:
        """Record what runs, and tell whether it goes on from an earlier start.

        Raise CheckpointError, naming what differs, if the directory holds a run of another description; ConfigError if
        nothing can be written there.
        """
        wanted = json.loads(json.dumps(dict(description)))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if not os.access(self.directory, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            known = self._described()
            if known is not None:
                _must_be_same(known, wanted, self.directory)
            else:
                self._describe(wanted)
            return known is not None or self._metrics.exists()
        except OSError as error:
            raise ConfigError(
                f"cannot write to {shortened(str(self.directory))}: {error.strerror or error}; name another folder"
            ) from error

    def _described(self) -> dict[str, Any] | None:
        """Return the description that is there; None if there is none that can be read."""
        if not self._run.exists():
            return None
        try:
            described = json.loads(self._run.read_bytes())
        except ValueError:
            described = None
        if isinstance(described, dict):
            return described
        self.remark(
            f"{self._run} is damaged and written anew; whether the settings are those of the start is not checked"
        )
        return None

    def _describe(self, description: Mapping[str, Any]) -> None:
        with whole(self._run) as draft:
            draft.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")

    def append(self, metrics: BatchMetrics) -> None:
        """Write a line; where there is no room for it the run goes on without."""
        # Hundreds of inputs in each batch would be most of the log; the checkpoint has those of the last batches.
        line = json.dumps(metrics.to_json() | {"inputs": []}).encode() + b"\n"
        try:
            with self._metrics.open("ab") as log:
                # What a full disk has cut short is a line of its own, not the beginning of this one.
                log.write(line if _ends_a_line(self._metrics) else b"\n" + line)
        except OSError as error:
            self.remark(f"batch {metrics.batch_id} is not in {self._metrics}: {error.strerror or error}")

    def batches(self) -> tuple[BatchMetrics, ...]:
        """Return one entry per batch, in order; lines that cannot be read are left out, and told of."""
        latest = {metrics.batch_id: metrics for metrics in self._readable()}
        return tuple(latest[batch] for batch in sorted(latest))

    def _readable(self) -> Iterator[BatchMetrics]:
        if not self._metrics.exists():
            return
        damaged = 0
        for line in self._metrics.read_bytes().splitlines():
            try:
                yield BatchMetrics.from_json(json.loads(line))
            except (ValueError, TypeError, AttributeError):
                damaged += 1
        if damaged:
            self.remark(f"{damaged} damaged line{'s' if damaged > 1 else ''} of {self._metrics} left out")


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _must_be_same(known: dict[str, Any], wanted: dict[str, Any], directory: Path) -> None:
    differing = [key for key in sorted(known.keys() | wanted.keys()) if known.get(key) != wanted.get(key)]
    if differing:
        key = differing[0]
        raise CheckpointError(
            f"{directory} holds a run with {key}={known.get(key)!r}, this one has {key}={wanted.get(key)!r}; "
            "give the same settings to resume it, another directory, or --fresh to start over"
        )
