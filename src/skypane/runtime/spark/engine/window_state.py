"""The state of a windowed query between micro-batches, and its form in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from skypane.operators.changes.window_phases import Phase
from skypane.operators.early_answers import EarlyAnswers
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.open_panes import OpenPanes
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.plan import Plan
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.engine.kept_panes import KeptPanes
from skypane.runtime.spark.engine.partials import PartialReference
from skypane.snapshots import from_json, to_json
from skypane.types import CheckpointError, Micros
from skypane.wording import counted


@dataclass(frozen=True, slots=True)
class WindowState:
    """The state of the progress policy, the partials of the open panes, the held rows, and the account of all rows.

    ahead   the held rows as they were read, for the late sink; empty without one
    phases  the windows that an aggregate whose functions have changed answers in part
    closed  the panes kept for late rows; None if windows are answered once
    readmitted   the last batch whose rejected rows were readmitted, by reason
    early   the early answers of the open windows; None if windows are answered at their end only
    """

    progress: ProgressState
    open: OpenPanes[PartialReference]
    ahead: tuple[PartialReference, ...] = ()
    account: RowAccount = field(default_factory=RowAccount)
    phases: tuple[Phase, ...] = ()
    closed: KeptPanes | None = None
    readmitted: Mapping[str, int] = field(default_factory=dict)
    early: EarlyAnswers[PartialReference] | None = None

    @classmethod
    def initial(cls, plan: Plan) -> Self:
        panes = OpenPanes[PartialReference].empty(plan.windows, plan.first, plan.stop)
        return cls(plan.progress.init(), panes, closed=None if plan.amend is None else KeptPanes.begun(panes))

    @classmethod
    def restored(cls, plan: Plan, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Self:
        """Return the state from its snapshots; raise CheckpointError if they cannot be read."""
        try:
            panes = _panes(operator["panes"])
            next_window = operator["next_window"]
            ahead = tuple(map(PartialReference.restored, operator["ahead"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the open panes in the checkpoint cannot be read: {error!r}") from error
        open_panes = OpenPanes(plan.windows, panes, next_window, plan.stop)
        closed = None if plan.amend is None else _closed(open_panes, operator.get("closed"))
        state, saved = plan.progress.restore(progress), operator.get("account")
        # Earlier versions kept no account, so it begins here.
        account = RowAccount.begun(plan.windows, state.held) if saved is None else RowAccount.restored(saved)
        phases = from_json(tuple[Phase, ...], operator.get("phases", []))
        early = _early(plan, operator.get("early"))
        return cls(state, open_panes, ahead, account, phases, closed, operator.get("readmitted", {}), early)

    def snapshot(self) -> dict[str, Any]:
        """Return the panes, the next window and the account as a JSON value."""
        value = {
            "panes": _snapshot(self.open.panes),
            "next_window": self.open.next_window,
            "ahead": [ref.snapshot() for ref in self.ahead],
            "account": self.account.snapshot(),
            **({"phases": to_json(self.phases)} if self.phases else {}),
        }
        if self.readmitted:
            value["readmitted"] = dict(self.readmitted)
        if self.early is not None:
            value["early"] = _early_snapshot(self.early)
        if self.closed is None:
            return value
        closed = {
            "panes": _snapshot(self.closed.panes),
            "versions": _named(self.closed.versions),
            "first": self.closed.first,
            "regular": _named(self.closed.regular),
        }
        counts = {"answered": self.closed.answered, "amended_once": self.closed.amended_once}
        return value | {"closed": closed | counts}

    def readmitting(self, reason: str, rows: int, through: int) -> Self:
        """Return the state in which rows that were rejected for `reason`, up to a batch, will be read again."""
        account = self.account.taken_back(reason, rows)
        return replace(self, account=account, readmitted={**self.readmitted, reason: through})

    def gate(self, plan: Plan) -> EntryRules:
        """Return the entry rules for the next batch."""
        rules = plan.rules_after(self.progress)
        return rules if self.closed is None else self.closed.rules(rules)

    @property
    def totals(self) -> RowTotals:
        """The number of rows read so far, by where they are now."""
        return self.account.totals(self.progress.held, self.open)

    @property
    def drained(self) -> bool:
        """Whether no pane is open, so that no window is left to answer."""
        return not self.open.panes

    @property
    def due(self) -> Micros | None:
        """The newest event time with which the next window is complete.

        None before the first punctuation, and if windows are amended, or answered early: then any row may do that.
        """
        punctuation, windows = self.progress.punctuation, self.open.windows
        if punctuation is None or self.closed is not None or self.early is not None:
            return None
        return self.when_passed(windows.bounds(windows.last_closed(punctuation) + 1)[1])

    def when_passed(self, time: Micros) -> Micros | None:
        """Return the newest event time with which the punctuation passes `time`, if it stays as far behind as it is."""
        punctuation, newest = self.progress.punctuation, self.progress.newest
        return None if punctuation is None or newest is None else time + newest - punctuation

    @property
    def files(self) -> frozenset[str]:
        """The files of the partials of open and kept panes, of early answers, and of the held rows."""
        kept = () if self.closed is None else self.closed.panes.values()
        shown = () if self.early is None else self.early.shown.values()
        return frozenset(ref.file for refs in (self.ahead, *self.open.panes.values(), *kept, *shown) for ref in refs)

    @property
    def bytes(self) -> int:
        """Bytes of the open panes' partials in files."""
        return sum(ref.size for refs in self.open.panes.values() for ref in refs)

    @property
    def rows(self) -> int:
        """Rows in the partials of the open panes."""
        return sum(ref.rows for refs in self.open.panes.values() for ref in refs)


def files_in(operator: Mapping[str, Any]) -> frozenset[str]:
    """Return the files that the snapshot of a state, or of the states of several queries, names."""
    if "queries" in operator:
        return frozenset().union(*map(files_in, operator["queries"].values()))
    kept = operator.get("closed", {}).get("panes", {})
    shown = operator.get("early", {}).get("shown", {})
    refs = [operator["ahead"], *operator["panes"].values(), *kept.values(), *shown.values()]
    return frozenset(PartialReference.restored(ref).file for some in refs for ref in some)


Panes = dict[int, tuple[PartialReference, ...]]


def _panes(value: Mapping[str, Any]) -> Panes:
    return {int(pane): tuple(map(PartialReference.restored, refs)) for pane, refs in value.items()}


def _snapshot(panes: Mapping[int, tuple[PartialReference, ...]]) -> dict[str, Any]:
    return {str(pane): [ref.snapshot() for ref in refs] for pane, refs in panes.items()}


def _named(versions: Mapping[int, int]) -> dict[str, int]:
    return {str(window): version for window, version in versions.items()}


def _numbered(versions: Mapping[str, Any]) -> dict[int, int]:
    return {int(window): int(version) for window, version in versions.items()}


def _closed(panes: OpenPanes[PartialReference], saved: Mapping[str, Any] | None) -> KeptPanes:
    """Return the kept panes; a checkpoint that kept none begins with its open panes."""
    begun = KeptPanes.begun(panes)
    if saved is None:
        return begun
    try:
        kept = replace(begun, panes=_panes(saved["panes"]), versions=_numbered(saved["versions"]), first=saved["first"])
        # Checkpoints of earlier versions lack the others.
        return replace(
            kept,
            regular=_numbered(saved.get("regular", {})),
            answered=int(saved.get("answered", 0)),
            amended_once=int(saved.get("amended_once", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the closed panes in the checkpoint cannot be read: {error!r}") from error


def _early_snapshot(early: EarlyAnswers[PartialReference]) -> dict[str, Any]:
    return {
        "newest": early.newest,
        "versions": _named(early.versions),
        "fresh": sorted(early.fresh),
        "shown": _snapshot(early.shown),
    }


def _early(plan: Plan, saved: Mapping[str, Any] | None) -> EarlyAnswers[PartialReference] | None:
    """Return the early answers; raise CheckpointError if the job has none any more, but open windows do."""
    if saved is None:
        return None
    try:
        versions = _numbered(saved["versions"])
        early = EarlyAnswers(saved["newest"], versions, frozenset(map(int, saved["fresh"])), _panes(saved["shown"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the early answers in the checkpoint cannot be read: {error!r}") from error
    if plan.early is not None:
        return early
    if versions:
        raise CheckpointError(
            f"this checkpoint has early answers of {counted(len(versions), 'open windows')}, which a job without early= "
            f"could not replace: keep early=, or answer these windows by a drain of the job with early= first"
        )
    return None
