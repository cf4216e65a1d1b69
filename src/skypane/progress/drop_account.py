"""Account of a drop budget: rows that may be dropped, rows that were dropped, and the share to drop next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

#: Bounds of the share to drop next, as parts of the budget: the least in debt, the most with a full account.
_LEAST, _MOST = 0.7, 1.25
#: Number of reserves over which credit beyond the reserve is spread, and how much faster missing credit is made up for:
#: a burst of late rows overdraws a low account, while a high one does no harm.
_SPREAD = 5
_FASTER = 2
#: Largest credit, in reserves, so that the savings of a calm year cannot be spent in a day.
_FULL = 2.0
#: Debt, in reserves, beyond which rows arrive later than before; at the begin of a stream, in what all its rows have earned.
_DEBT, _EARLY_DEBT = 0.5, 0.1


class Drops(NamedTuple):
    """Dropped rows: those that a slack known at the time would have saved, and the others."""

    avoidable: int
    unavoidable: int


@dataclass(frozen=True, slots=True)
class DropAccount:
    """Credit of a drop budget: every row adds `max_drop` to it, every dropped row subtracts 1.

    Credit is discarded beyond what a cycle earns, or twice the reserve. Rows that no slack known at the time could have
    saved make a debt of at most half a reserve: to wait longer would not have helped. Other debt is never forgiven. So
    a policy that keeps the credit above zero keeps the budget, apart from such rows.
    """

    credit: float = 0.0

    def after(self, rows: int, drops: Drops, max_drop: float, reserve: int, cycle: float) -> Self:
        """Return the account after `rows` more rows; a cycle has `cycle` rows."""
        most = max(_FULL * reserve, max_drop * cycle)
        earned = min(most, self.credit + max_drop * rows - drops.avoidable)
        return replace(self, credit=earned - min(drops.unavoidable, max(0.0, earned + _DEBT * reserve)))

    def share(self, max_drop: float, reserve: int, cycle: float) -> float:
        """Return the share of rows that may be dropped next: the budget, corrected by the credit.

        The credit should stay at the reserve. A surplus is spent slowly, over five reserves or the credit of `cycle`
        rows, whichever is more; a deficit is made up for twice as fast. The correction is slow because a slack that
        followed every row would be wrong twice, once when it rises and once when it falls.
        """
        spread = max(_SPREAD * reserve, max_drop * cycle)
        over = (self.credit - reserve) / spread
        return max_drop * min(_MOST, max(_LEAST, 1 + (over if over > 0 else _FASTER * over)))

    def in_debt(self, reserve: int, earned: float) -> bool:
        """Return whether the debt is a sign that rows arrive later than before; all rows so far have `earned` as much."""
        return self.credit < -min(_DEBT * reserve, _EARLY_DEBT * earned)

    def care(self, reserve: int) -> float:
        """Return the `care` of RecentDistances.slack_for(): 0 from a quarter of the reserve on, 1 in debt."""
        return min(1.0, max(0.0, 1 - self.credit / (0.25 * reserve)))

    def full(self, reserve: int) -> bool:
        """Return whether the account is nearly full, a sign that rows arrive earlier than before."""
        return self.credit > 0.95 * _FULL * reserve
