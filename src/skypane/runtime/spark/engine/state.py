"""What the engine remembers between micro-batches, and its form in the ledger."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any, Self

from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.progress.policy import ProgressState
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.store import PartialRef


@dataclass(frozen=True, slots=True)
class State:
    """The state after `batch_id`, the last batch committed (-1: none yet)."""

    batch_id: int
    progress: ProgressState
    open: OpenPanes[PartialRef]

    @classmethod
    def initial(cls, plan: Plan) -> Self:
        return cls(-1, plan.progress.init(), OpenPanes.empty(plan.windows))

    @classmethod
    def restored(cls, plan: Plan, manifest: Manifest) -> Self:
        panes = {pane: tuple(PartialRef(*ref) for ref in refs) for pane, refs in manifest.panes.items()}
        held = replace(OpenPanes[PartialRef].empty(plan.windows), panes=panes, next_window=manifest.next_window)
        return cls(manifest.batch_id, plan.progress.restore(manifest.progress), held)

    def manifest(self, metrics: dict[str, Any]) -> Manifest:
        panes = {pane: [list(astuple(ref)) for ref in refs] for pane, refs in self.open.panes.items()}
        return Manifest(self.batch_id, dict(self.progress.snapshot()), panes, self.open.next_window, metrics)

    @property
    def files(self) -> set[str]:
        """The files that hold the open panes' partials."""
        return {ref.file for refs in self.open.panes.values() for ref in refs}

    @property
    def rows(self) -> int:
        """Rows held for the open panes."""
        return sum(ref.rows for refs in self.open.panes.values() for ref in refs)
