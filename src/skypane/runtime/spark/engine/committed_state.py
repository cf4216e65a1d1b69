"""The committed state, and its form in the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from skypane.metrics import BatchMetrics
from skypane.progress import ProgressPolicy
from skypane.runtime.spark.engine import outbox
from skypane.runtime.spark.engine.control_loop import ControlLoop, ControlState
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.engine.outbox import Waiting
from skypane.runtime.spark.engine.program import Program, ProgramState
from skypane.snapshots import from_json, to_json


@dataclass(frozen=True, slots=True)
class CommittedState:
    """The state after `batch_id`, the last committed batch (-1 before the first one)."""

    batch_id: int
    state: ProgramState
    control: ControlState
    #: fingerprint of the last batch of Spark; a drain is not one, and has no rows
    fingerprint: Fingerprint
    #: number of drains among the batches
    drains: int = 0
    #: the rows that wait for a file of several batches, by sink
    outbox: Waiting = field(default_factory=dict)

    @property
    def files(self) -> frozenset[str]:
        """Names of the files, among the partials, that are needed."""
        return self.state.files | outbox.files_of(self.outbox)

    @classmethod
    def restored(cls, program: Program[Any], control: ControlLoop, manifest: Manifest | None) -> Self:
        if manifest is None:
            return cls(-1, program.init(), control.init(), Fingerprint())
        fingerprint = from_json(Fingerprint, manifest.fingerprint)
        return cls(
            manifest.batch_id,
            program.restore(manifest.progress, manifest.operator),
            control.restore(manifest.control),
            fingerprint,
            manifest.drains,
            outbox.restored(manifest.outbox),
        )

    def manifest(self, progress: ProgressPolicy, control: ControlLoop, metrics: BatchMetrics) -> Manifest:
        return Manifest(
            batch_id=self.batch_id,
            fingerprint=to_json(self.fingerprint),
            progress=progress.snapshot(self.state.progress),
            operator=self.state.snapshot(),
            control=control.snapshot(self.control),
            metrics=metrics.to_json(),
            drains=self.drains,
            outbox=outbox.snapshot(self.outbox),
        )
