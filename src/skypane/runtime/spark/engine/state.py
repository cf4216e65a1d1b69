"""What a windowed query remembers between micro-batches, and its form in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Self

from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.progress.policy import ProgressState
from skypane.runtime.spark.store import PartialRef


@dataclass(frozen=True, slots=True)
class State:
    """How far time has come, and the partials of the open panes."""

    progress: ProgressState
    open: OpenPanes[PartialRef]

    @classmethod
    def initial(cls, plan: Plan) -> Self:
        return cls(plan.progress.init(), OpenPanes.empty(plan.windows))

    @classmethod
    def restored(cls, plan: Plan, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Self:
        panes = {int(pane): tuple(PartialRef(*ref) for ref in refs) for pane, refs in operator["panes"].items()}
        held = replace(OpenPanes[PartialRef].empty(plan.windows), panes=panes, next_window=operator["next_window"])
        return cls(plan.progress.restore(progress), held)

    def snapshot(self) -> dict[str, Any]:
        """Return the panes and the next window as a JSON value."""
        panes = {str(pane): [list(astuple(ref)) for ref in refs] for pane, refs in self.open.panes.items()}
        return {"panes": panes, "next_window": self.open.next_window}

    @property
    def drained(self) -> bool:
        """Whether no window waits for an answer."""
        return not self.open.panes

    @property
    def files(self) -> frozenset[str]:
        """The files that hold the open panes' partials."""
        return frozenset(ref.file for refs in self.open.panes.values() for ref in refs)

    @property
    def rows(self) -> int:
        """Rows held for the open panes."""
        return sum(ref.rows for refs in self.open.panes.values() for ref in refs)
