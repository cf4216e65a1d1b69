"""What a run leaves behind for its report: one description, and one line per micro-batch.

A run that is interrupted and resumed writes on in the same log. A batch that Spark replays after a crash is logged
twice; the later line counts, as it does in the engine's ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skypane.metrics import BatchMetrics
from skypane.types import CheckpointError


@dataclass(frozen=True)
class RunLog:
    """`run.json` and `metrics.jsonl` in one directory."""

    directory: Path

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

        Raise CheckpointError, naming what differs, if the directory holds a run of another description.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        wanted = json.loads(json.dumps(dict(description)))
        if self._run.exists():
            _must_be_same(json.loads(self._run.read_text()), wanted, self.directory)
            self._drop_torn_line()
            return True
        part = self._run.with_suffix(".part")
        part.write_text(json.dumps(wanted, indent=2) + "\n")
        part.replace(self._run)
        return False

    def _drop_torn_line(self) -> None:
        if self._metrics.exists():
            text = self._metrics.read_bytes()
            self._metrics.write_bytes(text[: text.rfind(b"\n") + 1])

    def append(self, metrics: BatchMetrics) -> None:
        with self._metrics.open("a") as log:
            log.write(json.dumps(metrics.to_json()) + "\n")

    def batches(self) -> tuple[BatchMetrics, ...]:
        """Return one entry per batch, in order."""
        if not self._metrics.exists():
            return ()
        lines = map(json.loads, self._metrics.read_text().splitlines())
        latest = {metrics.batch_id: metrics for metrics in map(BatchMetrics.from_json, lines)}
        return tuple(latest[batch] for batch in sorted(latest))


def _must_be_same(found: dict[str, Any], wanted: dict[str, Any], directory: Path) -> None:
    differing = [key for key in sorted(found.keys() | wanted.keys()) if found.get(key) != wanted.get(key)]
    if differing:
        key = differing[0]
        raise CheckpointError(
            f"{directory} holds a run with {key}={found.get(key)!r}, this one has {key}={wanted.get(key)!r}; "
            "give the same settings to resume it, another directory, or --fresh to start over"
        )
