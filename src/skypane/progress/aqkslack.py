"""Adaptive K-slack: as little slack as a budget of dropped rows allows (paper 1, section 6.2, figure 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from skypane.progress.account import Account
from skypane.progress.arrivals import Arrivals
from skypane.progress.future import DAY
from skypane.progress.kslack import largest_delay
from skypane.progress.law import PunctuationLaw, not_negative
from skypane.progress.recent import RecentDistances
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros
from skypane.wording import count, percent, span

#: Rows that may be dropped while a memory fades by half: the long one is right where nothing changes, the short one
#: where something has.
_LONG, _SHORT = 400, 25
#: What happens within one cycle (a batch, or a pane and the slack behind it) is no trend but a single sample, of where
#: in its pane the newest time stood: so many cycles each memory spans at least, and the account makes up for.
_LONG_CYCLES, _SHORT_CYCLES, _ACCOUNT_CYCLES = 32, 4, 16
#: What is later than K-slack would wait is a trend once it has lasted for this part of its delay.
_LASTING = 0.5
RESERVE = 100


@dataclass(frozen=True)
class AdaptiveProgress(Progress):
    """Progress, and what the law goes by."""

    #: The longest delay seen: what K-slack would wait, and the most that this law does.
    longest: Micros = 0
    #: The punctuation of K-slack on the same stream, and the rows that it would have dropped: no law that waits for
    #: no longer than the longest delay seen could have saved them.
    patient: Micros | None = None
    unavoidable: int = 0
    #: The newest time after the first batch: how long the stream has been watched counts from there.
    since: Micros | None = None
    credit: float = 0.0
    #: The share of rows that may be dropped next, and the share of the recent ones that this slack would have dropped.
    share: float = 0.0
    would_drop: float = 0.0
    #: Whether the slack is known, or still the longest delay seen; and which memory it is from.
    known: bool = False
    lately: bool = False
    long: RecentDistances = field(default_factory=RecentDistances)
    short: RecentDistances = field(default_factory=RecentDistances)
    #: The source that most of the last batch's late rows came from, where sources are named and one has sent half.
    lagging: str | None = None


@dataclass(frozen=True)
class AqKSlack(PunctuationLaw[AdaptiveProgress]):
    """Drop at most the share `max_drop` of all rows, and wait no longer than that takes.

    K is the smallest slack that would have dropped at most a share of the recent rows, and never more than K-slack
    would wait, which is the longest delay seen. The share is the budget, corrected gently by an account of what was
    really dropped: so K stands still on a stream that goes on as it was, as the best fixed delay does.

        credit = max_drop * seen - dropped, at most two reserves
        share  = max_drop * (1 + (credit - reserve) / (5 * reserve)), within 0.7 and 1.25 times max_drop,
                 twice as fast below the reserve

    Recent rows are remembered twice, over about 400 / max_drop rows and a sixteenth of that. The long memory decides;
    in debt beyond half a reserve the more careful of the two, with the account full the less careful one: so a change of
    the delays is followed within the short memory, and a burst that the reserve can pay for is not followed at all.

    Until enough is known K is the longest delay seen: the law is never later than K-slack, from the first row on.
    docs/progress.md derives all this, and says what no law can do.
    """

    max_drop: float
    max_slack: Duration | None = DAY
    #: Rows of credit that the account is kept at, for what no law can see coming.
    reserve: int = RESERVE

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.max_drop
        if not (isinstance(given, int | float) and 0 < given < 1):
            raise ConfigError(f"max_drop is a share of rows such as 0.01, need 0 < max_drop < 1, got {self.max_drop!r}")
        if self.reserve < 1:
            raise ConfigError(f"reserve must be at least 1 row, got {self.reserve}")
        not_negative("max_slack", self.max_slack)

    @property
    def drop_budget(self) -> float:
        """Largest share of rows that may be dropped."""
        return self.max_drop

    def init(self) -> AdaptiveProgress:
        """Return the state before the first batch."""
        return AdaptiveProgress()

    def restore(self, snapshot: Mapping[str, Any]) -> AdaptiveProgress:
        """Return the state whose snapshot() this is; a longest delay beyond this law's bound is cut to it."""
        state = AdaptiveProgress.restored(snapshot)
        return state if self.max_slack is None else replace(state, longest=min(state.longest, micros(self.max_slack)))

    def _measure(self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: Arrivals) -> AdaptiveProgress:
        newest = counted.newest
        if newest is None or before.newest is None or before.since is None or before.patient is None:
            return replace(counted, since=newest, patient=newest)
        dropped = counted.dropped - before.dropped
        longest = max(before.longest, largest_delay(before.newest, arrivals, self.max_slack))
        pane = int((arrivals.pane_end - arrivals.pane_start).max())
        cycle = max(arrivals.total, before.long.rows_in(pane + before.slack))
        # What K-slack itself would have dropped, once the stream is known, no slack could have saved: a source that was
        # silent for an hour and sends it all at once says nothing of what is worth waiting for, until it happens again
        # or goes on for half an hour.
        at_once = before.known and newest - before.patient < _LASTING * longest
        told = arrivals.only(arrivals.pane_end > before.patient) if at_once else arrivals
        distance, moved = before.newest - told.pane_end, newest - before.newest
        measured = replace(
            counted,
            longest=longest,
            patient=max(before.patient, newest - longest),
            unavoidable=before.unavoidable + arrivals.late(before.patient),
            credit=Account(before.credit).after(arrivals.total, dropped, self.max_drop, self.reserve).credit,
            long=before.long.add(distance, told.rows, moved, max(_LONG / self.max_drop, _LONG_CYCLES * cycle)),
            short=before.short.add(distance, told.rows, moved, max(_SHORT / self.max_drop, _SHORT_CYCLES * cycle)),
            lagging=_lagging(arrivals),
        )
        return self._decided(measured, newest - before.since, pane, cycle)

    def _decided(self, state: AdaptiveProgress, watched: Micros, pane: Micros, cycle: float) -> AdaptiveProgress:
        """Return the state with the slack that the memories and the account call for."""
        account = Account(state.credit)
        share = account.share(self.max_drop, self.reserve, _ACCOUNT_CYCLES * cycle)
        slack, lately = state.long.slack_for(share, watched, pane, account.care(self.reserve)), False
        if slack is not None and account.in_debt(self.reserve):
            recent = state.short.slack_for(share, watched, pane)
            lately = recent is None or recent > slack
            slack = None if recent is None else max(slack, recent)
        elif slack is not None and account.full(self.reserve):
            recent = state.short.slack_for(share, watched, pane)
            lately = recent is not None and recent < slack
            slack = slack if recent is None else min(slack, recent)
        known = slack is not None and slack < state.longest
        chosen = state.longest if slack is None else min(slack, state.longest)
        would_drop = (state.short if lately else state.long).share_dropped_by(chosen)
        return replace(state, slack=chosen, share=share, would_drop=would_drop, known=known, lately=known and lately)

    def explain(self, state: AdaptiveProgress) -> str:
        """Return in one line why the punctuation is where it is."""
        if state.since is None:
            return "no row has come yet"
        if state.known:
            memory = "rows of late" if state.lately else "rows remembered"
            why = f"{span(state.slack)} would have dropped {percent(state.would_drop)} of the {memory}"
        else:
            why = f"{span(state.slack)}, the longest delay seen, as K-slack"
        line = f"{why}; {percent(state.share)} may be dropped, the credit is {count(round(state.credit))} rows"
        if state.unavoidable:
            line += f"; of {count(state.dropped)} dropped {count(state.unavoidable)} were later than any before them"
        return line if state.lagging is None else f"{line}; most late rows are from {state.lagging}"

    def figures(self, state: AdaptiveProgress) -> dict[str, float]:
        """Return the numbers behind explain(): shares of rows, rows, and the longest delay in microseconds."""
        return {
            "share": state.share,
            "credit": state.credit,
            "would_drop": state.would_drop,
            "longest": state.longest,
            "unavoidable": state.unavoidable,
        }


def _lagging(arrivals: Arrivals) -> str | None:
    late = sum(source.late for source in arrivals.sources.values())
    # Of several the last by name: sources come in no order, and a state is that of the rows.
    worst = max(arrivals.sources, key=lambda name: (arrivals.sources[name].late, name), default=None)
    return worst if worst is not None and late and 2 * arrivals.sources[worst].late >= late else None
