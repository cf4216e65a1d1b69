"""What a windowed query remembers between micro-batches, and its form in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from skypane.operators.open_panes import OpenPanes
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.plan import Plan
from skypane.progress.policy import ProgressState
from skypane.runtime.spark.engine.partials import PartialRef
from skypane.types import CheckpointError


@dataclass(frozen=True, slots=True)
class State:
    """How far time has come, the partials of the open panes, the held rows, and where all rows are in counts.

    ahead   the held rows as they came, which the late sink may need; empty where there is none
    """

    progress: ProgressState
    open: OpenPanes[PartialRef]
    ahead: tuple[PartialRef, ...] = ()
    account: RowAccount = field(default_factory=RowAccount)

    @classmethod
    def initial(cls, plan: Plan) -> Self:
        return cls(plan.progress.init(), OpenPanes.empty(plan.windows))

    @classmethod
    def restored(cls, plan: Plan, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Self:
        """Return the state whose snapshots these are; raise CheckpointError if they cannot be."""
        try:
            panes = {int(pane): tuple(map(PartialRef.from_json, refs)) for pane, refs in operator["panes"].items()}
            next_window = operator["next_window"]
            ahead = tuple(map(PartialRef.from_json, operator["ahead"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the open panes in the checkpoint cannot be read: {error!r}") from error
        open_panes = replace(OpenPanes[PartialRef].empty(plan.windows), panes=panes, next_window=next_window)
        state, saved = plan.progress.restore(progress), operator.get("account")
        # Earlier versions did not count: then it begins here.
        account = RowAccount.begun(plan.windows, state.held) if saved is None else RowAccount.restored(saved)
        return cls(state, open_panes, ahead, account)

    def snapshot(self) -> dict[str, Any]:
        """Return the panes, the next window and the account as a JSON value."""
        panes = {str(pane): [ref.to_json() for ref in refs] for pane, refs in self.open.panes.items()}
        return {
            "panes": panes,
            "next_window": self.open.next_window,
            "ahead": [ref.to_json() for ref in self.ahead],
            "account": self.account.snapshot(),
        }

    @property
    def totals(self) -> RowTotals:
        """Where all rows are that were read."""
        return self.account.totals(self.progress.held, self.open)

    @property
    def drained(self) -> bool:
        """Whether no window waits for an answer."""
        return not self.open.panes

    @property
    def files(self) -> frozenset[str]:
        """The files of the open panes' partials and of the held rows."""
        return frozenset(ref.file for refs in (self.ahead, *self.open.panes.values()) for ref in refs)

    @property
    def bytes(self) -> int:
        """Bytes of the open panes' partials, as they lie in files."""
        return sum(ref.size for refs in self.open.panes.values() for ref in refs)

    @property
    def rows(self) -> int:
        """Rows held for the open panes."""
        return sum(ref.rows for refs in self.open.panes.values() for ref in refs)
