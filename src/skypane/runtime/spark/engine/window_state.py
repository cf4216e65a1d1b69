"""The state of a windowed query between micro-batches, and its form in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from skypane.operators.open_panes import OpenPanes
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.plan import Plan
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.engine.partials import PartialReference
from skypane.types import CheckpointError


@dataclass(frozen=True, slots=True)
class WindowState:
    """The state of the progress policy, the partials of the open panes, the held rows, and the account of all rows.

    ahead   the held rows as they were read, for the late sink; empty without one
    """

    progress: ProgressState
    open: OpenPanes[PartialReference]
    ahead: tuple[PartialReference, ...] = ()
    account: RowAccount = field(default_factory=RowAccount)

    @classmethod
    def initial(cls, plan: Plan) -> Self:
        return cls(plan.progress.init(), OpenPanes.empty(plan.windows))

    @classmethod
    def restored(cls, plan: Plan, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Self:
        """Return the state from its snapshots; raise CheckpointError if they cannot be read."""
        try:
            panes = {int(pane): tuple(map(PartialReference.restored, refs)) for pane, refs in operator["panes"].items()}
            next_window = operator["next_window"]
            ahead = tuple(map(PartialReference.restored, operator["ahead"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the open panes in the checkpoint cannot be read: {error!r}") from error
        open_panes = replace(OpenPanes[PartialReference].empty(plan.windows), panes=panes, next_window=next_window)
        state, saved = plan.progress.restore(progress), operator.get("account")
        # Earlier versions kept no account, so it begins here.
        account = RowAccount.begun(plan.windows, state.held) if saved is None else RowAccount.restored(saved)
        return cls(state, open_panes, ahead, account)

    def snapshot(self) -> dict[str, Any]:
        """Return the panes, the next window and the account as a JSON value."""
        panes = {str(pane): [ref.snapshot() for ref in refs] for pane, refs in self.open.panes.items()}
        return {
            "panes": panes,
            "next_window": self.open.next_window,
            "ahead": [ref.snapshot() for ref in self.ahead],
            "account": self.account.snapshot(),
        }

    @property
    def totals(self) -> RowTotals:
        """The number of rows read so far, by where they are now."""
        return self.account.totals(self.progress.held, self.open)

    @property
    def drained(self) -> bool:
        """Whether no pane is open, so that no window is left to answer."""
        return not self.open.panes

    @property
    def files(self) -> frozenset[str]:
        """The files of the open panes' partials and of the held rows."""
        return frozenset(ref.file for refs in (self.ahead, *self.open.panes.values()) for ref in refs)

    @property
    def bytes(self) -> int:
        """Bytes of the open panes' partials in files."""
        return sum(ref.size for refs in self.open.panes.values() for ref in refs)

    @property
    def rows(self) -> int:
        """Rows in the partials of the open panes."""
        return sum(ref.rows for refs in self.open.panes.values() for ref in refs)
