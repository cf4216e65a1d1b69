"""Adaptive K-slack: the smallest slack that a drop budget allows (paper 1, section 6.2, figure 17)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from skypane.progress.drop_account import DropAccount
from skypane.progress.far_future import DAY
from skypane.progress.kslack import largest_delay
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.recent_lateness import RecentDistances
from skypane.progress.slack_policy import SlackPolicy, not_negative
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros
from skypane.wording import count, percent, span

#: Half-lives of the two memories, in rows that may be dropped: the long memory suits a steady stream, the short one a
#: stream that has changed.
_LONG, _SHORT = 400, 25
#: Least number of cycles that each memory spans, and over which the account makes up for a difference. A cycle is a
#: batch, or a pane and the slack behind it; it is a single sample and shows no trend, since it depends on where in its
#: pane the newest time was.
_LONG_CYCLES, _SHORT_CYCLES, _ACCOUNT_CYCLES = 32, 4, 16
#: Rows later than the slack of K-slack are a trend once they have come for this part of their delay.
_LASTING = 0.5
RESERVE = 100


@dataclass(frozen=True)
class AdaptiveProgress(Progress):
    """Progress, and the measurements of the policy."""

    #: The longest delay seen: the slack of K-slack, and the upper bound of this policy's slack.
    longest: Micros = 0
    #: The punctuation of K-slack on the same stream, and the rows that K-slack would have dropped: no policy whose
    #: slack is at most the longest delay seen could have saved them.
    patient: Micros | None = None
    unavoidable: int = 0
    #: The newest time after the first batch; the observed event time counts from it.
    since: Micros | None = None
    credit: float = 0.0
    #: The share of rows that may be dropped next, and the share of recent rows that this slack would have dropped.
    share: float = 0.0
    would_drop: float = 0.0
    #: Whether the slack comes from a memory (else it is the longest delay seen), and whether from the short one.
    known: bool = False
    lately: bool = False
    long: RecentDistances = field(default_factory=RecentDistances)
    short: RecentDistances = field(default_factory=RecentDistances)
    #: The source of at least half of the last batch's late rows, if sources are named and there is one.
    lagging: str | None = None


@dataclass(frozen=True)
class AqKSlack(SlackPolicy[AdaptiveProgress]):
    """Drop at most the share `max_drop` of all rows, with the smallest slack that achieves it.

    K is the smallest slack that would have dropped at most a given share of the recent rows, and at most the slack of
    K-slack, the longest delay seen. The share is the budget, corrected slowly by an account of the rows really dropped:
    so K is constant on a steady stream, like the best fixed delay.

        credit = max_drop * seen - dropped, at most two reserves
        share  = max_drop * (1 + (credit - reserve) / (5 * reserve)), within 0.7 and 1.25 times max_drop,
                 twice as fast below the reserve

    Two memories keep the recent rows, over about 400 / max_drop rows and a sixteenth of that. The long memory decides,
    except in debt beyond half a reserve, where the larger slack of the two applies, and with a full account, where the
    smaller one applies. So the slack follows a change of the delays within the short memory, and does not follow a
    burst that the reserve covers.

    Until enough rows are known, K is the longest delay seen: from the first row on, the policy never waits longer than
    K-slack. docs/progress.md derives this and describes what no policy can achieve.
    """

    max_drop: float
    max_slack: Duration | None = DAY
    #: Credit, in rows, that the account should hold for delays that no policy can foresee.
    reserve: int = RESERVE

    State = AdaptiveProgress
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

    def restore(self, snapshot: Any) -> AdaptiveProgress:
        """Return the state that snapshot() wrote; a longest delay above this policy's `max_slack` is cut to it."""
        state: AdaptiveProgress = super().restore(snapshot)
        return state if self.max_slack is None else replace(state, longest=min(state.longest, micros(self.max_slack)))

    def _measure(self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: PaneArrivals) -> AdaptiveProgress:
        newest = counted.newest
        if newest is None or before.newest is None or before.since is None or before.patient is None:
            return replace(counted, since=newest, patient=newest)
        dropped = counted.dropped - before.dropped
        longest = max(before.longest, largest_delay(before.newest, arrivals, self.max_slack))
        pane = int((arrivals.pane_end - arrivals.pane_start).max())
        cycle = max(arrivals.total, before.long.rows_in(pane + before.slack))
        # Once the stream is known, rows that K-slack would have dropped are left out, since no slack could have saved
        # them: a source that was silent for an hour and sends it all at once is not worth waiting for, unless it
        # happens again or continues for half an hour.
        at_once = before.known and newest - before.patient < _LASTING * longest
        relevant = arrivals.only(arrivals.pane_end > before.patient) if at_once else arrivals
        distance, moved = before.newest - relevant.pane_end, newest - before.newest
        measured = replace(
            counted,
            longest=longest,
            patient=max(before.patient, newest - longest),
            unavoidable=before.unavoidable + arrivals.late(before.patient),
            credit=DropAccount(before.credit).after(arrivals.total, dropped, self.max_drop, self.reserve).credit,
            long=before.long.add(distance, relevant.rows, moved, max(_LONG / self.max_drop, _LONG_CYCLES * cycle)),
            short=before.short.add(distance, relevant.rows, moved, max(_SHORT / self.max_drop, _SHORT_CYCLES * cycle)),
            lagging=_lagging(arrivals),
        )
        return self._adapted(measured, newest - before.since, pane, cycle)

    def _adapted(self, state: AdaptiveProgress, watched: Micros, pane: Micros, cycle: float) -> AdaptiveProgress:
        """Return the state with the slack that follows from the memories and the account."""
        account = DropAccount(state.credit)
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
        """Return the reason for the current punctuation in one line."""
        if state.since is None:
            return "no row has come yet"
        if state.known:
            memory = "most recent rows" if state.lately else "rows remembered"
            why = f"{span(state.slack)} would have dropped {percent(state.would_drop)} of the {memory}"
        else:
            why = f"{span(state.slack)}, the longest delay seen, as K-slack"
        line = f"{why}; {percent(state.share)} may be dropped, the credit is {count(round(state.credit))} rows"
        if state.unavoidable:
            line += f"; of {count(state.dropped)} dropped {count(state.unavoidable)} were later than any before them"
        return line if state.lagging is None else f"{line}; most late rows are from {state.lagging}"

    def figures(self, state: AdaptiveProgress) -> dict[str, float]:
        """Return the numbers in explain(): shares of rows, rows, and the longest delay in microseconds."""
        return {
            "share": state.share,
            "credit": state.credit,
            "would_drop": state.would_drop,
            "longest": state.longest,
            "unavoidable": state.unavoidable,
        }


def _lagging(arrivals: PaneArrivals) -> str | None:
    late = sum(source.late for source in arrivals.sources.values())
    # Ties are broken by name: the order of the sources must not affect the state.
    worst = max(arrivals.sources, key=lambda name: (arrivals.sources[name].late, name), default=None)
    return worst if worst is not None and late and 2 * arrivals.sources[worst].late >= late else None
