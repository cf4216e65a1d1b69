"""The account of a drop budget: what may be dropped, what was, and what may therefore be dropped next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

#: Of the budget, at least so much is spent in debt, and at most so much with the reserve more than full.
_LEAST, _MOST = 0.7, 1.25
#: Reserves over which credit beyond the reserve is spread, and how much faster a gap in the reserve is filled: rows that
#: are late together overdraw an account that stands low, and nothing is lost by one that stands high.
_SPREAD = 5
_FASTER = 2
#: Reserves that are kept at most: what a calm year has not spent is not there to be spent in a day.
_FULL = 2.0


@dataclass(frozen=True, slots=True)
class Account:
    """Every row brings `max_drop` of credit, every dropped row costs one.

    Credit beyond twice the reserve is forfeited, debt never is: so the credit is never more than max_drop * seen -
    dropped, and whoever keeps it above zero keeps the budget.
    """

    credit: float = 0.0

    def after(self, rows: int, dropped: int, max_drop: float, reserve: int) -> Self:
        """Return the account after `rows` rows of which `dropped` were dropped."""
        return replace(self, credit=min(_FULL * reserve, self.credit + max_drop * rows - dropped))

    def share(self, max_drop: float, reserve: int, cycle: float) -> float:
        """Return the share of rows that may be dropped next: the budget, a little more or less by the credit.

        The credit is meant to stay at the reserve, and a difference is made up for slowly, over five reserves or
        what `cycle` rows bring, half of that where credit is missing: a slack that follows every row is wrong twice,
        once up and once down.
        """
        spread = max(_SPREAD * reserve, max_drop * cycle)
        over = (self.credit - reserve) / spread
        return max_drop * min(_MOST, max(_LEAST, 1 + (over if over > 0 else _FASTER * over)))

    def in_debt(self, reserve: int) -> bool:
        """Return whether more than half a reserve has been overspent: the rows are later than they were."""
        return self.credit < -0.5 * reserve

    def care(self, reserve: int) -> float:
        """Return 0 with a quarter of the reserve or more, 1 in debt: then nothing is guessed between two edges."""
        return min(1.0, max(0.0, 1 - self.credit / (0.25 * reserve)))

    def full(self, reserve: int) -> bool:
        """Return whether hardly anything has been spent for long: the rows are earlier than they were."""
        return self.credit > 0.95 * _FULL * reserve
