"""What is true after the last committed batch, and its form in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.engine.control import Control, ControlState
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.engine.program import Program, ProgramState
from skypane.types import CheckpointError


@dataclass(frozen=True, slots=True)
class Standing:
    """What is true after `batch_id`, the last batch committed (-1: none yet)."""

    batch_id: int
    state: ProgramState
    control: ControlState
    #: of the last batch that was Spark's: a drain is not, and brings no rows
    fingerprint: Fingerprint
    #: how many of the batches were drains
    drains: int = 0

    @classmethod
    def restored(cls, program: Program[Any], control: Control, manifest: Manifest | None) -> Self:
        if manifest is None:
            return cls(-1, program.init(), control.init(), Fingerprint())
        try:
            fingerprint = Fingerprint(**manifest.fingerprint)
        except TypeError as error:
            raise CheckpointError(f"the fingerprint in the checkpoint cannot be read: {error}") from error
        return cls(
            manifest.batch_id,
            program.restore(manifest.progress, manifest.operator),
            control.restore(manifest.control),
            fingerprint,
            manifest.drains,
        )

    def manifest(self, control: Control, metrics: BatchMetrics) -> Manifest:
        return Manifest(
            batch_id=self.batch_id,
            fingerprint=self.fingerprint.to_json(),
            progress=dict(self.state.progress.snapshot()),
            operator=self.state.snapshot(),
            control=control.snapshot(self.control),
            metrics=metrics.to_json(),
            drains=self.drains,
        )
