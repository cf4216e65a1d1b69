"""Adaptive K-slack: the smallest slack that a drop budget allows (paper 1, section 6.2, figure 17)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from skypane.progress.drop_account import DropAccount, Drops
from skypane.progress.far_future import DAY
from skypane.progress.kslack import largest_delay, longest_delay, may_exceed
from skypane.progress.pane_arrivals import PaneArrivals, PaneRun
from skypane.progress.recent_lateness import RecentDistances, late_by_slack, padded_sum
from skypane.progress.recent_windows import Clock, RecentWindows
from skypane.progress.slack_policy import SlackPolicy, clocks_off, not_negative
from skypane.progress.state import Progress
from skypane.snapshots import ADDED
from skypane.types import ConfigError, Duration, FloatArray, Length, Micros, micros
from skypane.wording import count, counted, percent, span

Counted = Literal["rows", "windows"]


class _Budget(NamedTuple):
    """Numbers of a budget, in rows that may be dropped or in windows that may be amended.

    long, short   half-lives of the two memories: the long one suits a steady stream, the short one a stream that has changed
    enough        least number by which a slack is chosen
    reserve       credit that the account should hold, unless the policy has another
    """

    long: int
    short: int
    enough: int
    reserve: int


#: A day has few windows, and an amended one is not lost: a budget of windows is learned from fewer of them.
_BUDGETS: Final[dict[Counted, _Budget]] = {"rows": _Budget(400, 25, 10, 100), "windows": _Budget(100, 10, 5, 10)}
#: Least number of cycles that each memory spans, and over which the account makes up for a difference. A cycle is a
#: batch, or a pane and the slack behind it; it is a single sample and shows no trend, since it depends on where in its
#: pane the newest time was.
_LONG_CYCLES, _SHORT_CYCLES, _ACCOUNT_CYCLES = 32, 4, 16
#: The same for the long memory in cycles of the longest delay seen: the share of rows that are a day late shows over days.
_LONGEST_CYCLES = 4
#: Cycles that have to pass before a slack is known, until a reserve is earned; else one.
_EARLY_CYCLES = 4
#: Cycles of the longest delay after which the policy no longer waits for enough rows.
_LEARNING_CYCLES = 2
#: Rows later than the slack of K-slack are a trend once they have come for this part of their delay.
_LASTING = 0.5


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
    #: How far a part of the stream that is more than the budget was behind the newest time; 0: not beyond the slack.
    lag: Micros = field(default=0, metadata=ADDED)
    #: Whether too few rows have come to judge the budget by: the punctuation waits.
    learns: bool = field(default=False, metadata=ADDED)
    #: Whether the memories and the account count windows instead of rows, and the recent windows if they do.
    of_windows: bool = field(default=False, metadata=ADDED)
    windows: RecentWindows = field(default_factory=RecentWindows, metadata=ADDED)


class _Sample(NamedTuple):
    """A batch, in rows or in windows.

    earning   by how many the account earns
    known     how many the memories count, and `late` for each slack of EDGES how many of them it would have dropped
    drops     those that were really dropped or amended
    """

    earning: int
    known: int
    late: FloatArray
    drops: Drops


@dataclass(frozen=True)
class AqKSlack(SlackPolicy[AdaptiveProgress]):
    """Drop at most the share `max_drop` of all rows, or amend at most `max_amended` of the windows, with the smallest slack.

    K is the smallest slack that would have dropped at most a given share of the recent rows, and at most the slack of
    K-slack, the longest delay seen. The share is the budget, corrected slowly by an account of the rows really dropped:
    so K is constant on a steady stream, like the best fixed delay.

        credit = max_drop * seen - dropped, at most two reserves, or what a cycle of the longest delay earns
        share  = max_drop * (1 + (credit - reserve) / (5 * reserve)), within 0.7 and 1.25 times max_drop,
                 twice as fast below the reserve

    Two memories keep the recent rows, over about 400 / max_drop rows and a sixteenth of that; the long one spans at least
    four times the longest delay. The long memory decides,
    except in debt beyond half a reserve, where the larger slack of the two applies, and with a full account, where the
    smaller one applies. So the slack follows a change of the delays within the short memory, and does not follow a
    burst that the reserve covers. Rows that even K-slack would have dropped make a debt of at most half a reserve.

    If rows are late, the punctuation waits until 10 / max_drop rows have come, or the newest time has moved on by two
    cycles. Until enough rows are known, K is the longest delay seen: the policy never waits longer than K-slack, which
    waits as long at the begin. docs/progress.md derives this and describes what no policy can achieve.

    With `max_amended` instead of `max_drop`, the same counts windows: of all answered windows, at most this share may be
    amended, because a row came after the answer. The job then needs late=Amend(...).

    >>> progress = sp.AqKSlack(max_drop=0.02)  # at most 2 % of the rows are late
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", progress=progress
    ... )
    """

    #: Largest share of the rows that may be dropped as late.
    max_drop: float | None = None
    #: Largest delay that K takes in; None: no limit.
    max_slack: Duration | None = DAY
    #: Credit that the account should hold for delays that no policy can foresee; None: 100 rows, or 10 windows.
    reserve: int | None = None
    #: Largest share of the answered windows that late rows may amend; instead of max_drop.
    max_amended: float | None = None

    State = AdaptiveProgress
    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")
    _follows_frontier: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.max_drop is None) == (self.max_amended is None):
            raise ConfigError(
                "AqKSlack needs one budget: max_drop, the share of rows that may be dropped, such as 0.01, or max_amended, "
                f"the share of windows that may be amended, such as 0.05; got max_drop={self.max_drop!r}, "
                f"max_amended={self.max_amended!r}"
            )
        name = "max_drop" if self._counted == "rows" else "max_amended"
        given: object = getattr(self, name)
        if not (isinstance(given, int | float) and 0 < given < 1):
            raise ConfigError(f"{name} is a share of {self._counted} such as 0.01, need 0 < {name} < 1, got {given!r}")
        if self.reserve is None:
            object.__setattr__(self, "reserve", _BUDGETS[self._counted].reserve)
        if self._reserve < 1:
            raise ConfigError(f"reserve must be at least 1, got {self.reserve}")
        not_negative("max_slack", self.max_slack)

    @property
    def _counted(self) -> Counted:
        return "rows" if self.max_amended is None else "windows"

    @property
    def _share(self) -> float:
        """The budget, as a share of what it counts."""
        return (self.max_drop if self.max_amended is None else self.max_amended) or 0.0

    @property
    def _reserve(self) -> int:
        return _BUDGETS[self._counted].reserve if self.reserve is None else self.reserve

    @property
    def drop_budget(self) -> float | None:
        """Largest share of rows that may be dropped."""
        return self.max_drop

    @property
    def amend_budget(self) -> float | None:
        """Largest share of answered windows that late rows may amend."""
        return self.max_amended

    @property
    def needs_backlog(self) -> bool:
        """Rows that are late because their input was behind are judged apart."""
        return True

    def init(self) -> AdaptiveProgress:
        """Return the state before the first batch."""
        return AdaptiveProgress(of_windows=self._counted == "windows")

    def restore(self, snapshot: Any) -> AdaptiveProgress:
        """Return the state that snapshot() wrote.

        A longest delay above this policy's `max_slack` is cut to it. If the budget was one of rows and is one of windows
        now, or the reverse, the memories and the account begin again.
        """
        state: AdaptiveProgress = super().restore(snapshot)
        nothing = self.init()
        if state.of_windows != nothing.of_windows:
            begun = {
                name: getattr(nothing, name) for name in ("of_windows", "windows", "long", "short", "credit", "known")
            }
            state = replace(state, since=state.newest, **begun)
        return state if self.max_slack is None else replace(state, longest=min(state.longest, micros(self.max_slack)))

    def asks_order(self, state: AdaptiveProgress, arrivals: PaneArrivals) -> bool:
        """Return whether a row of a batch may be later than all so far behind one that came before it in the batch."""
        return may_exceed(state.slack, arrivals, self.max_slack)

    def _measure(self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: PaneArrivals) -> AdaptiveProgress:
        newest = counted.newest
        if newest is None or before.newest is None or before.since is None or before.patient is None:
            return self._begun(counted, arrivals)
        longest, behind = self._longest(before, arrivals, before.newest)
        # While the policy learns, K-slack waits too.
        patient = before.punctuation if before.learns else before.patient
        counted = replace(
            counted,
            longest=longest,
            patient=newest - longest if patient is None else max(patient, newest - longest),
            unavoidable=before.unavoidable + arrivals.late(patient),
            lagging=_lagging(arrivals),
        )
        # Rows that K-slack would have dropped are left out, since no slack could have saved them: a source that was
        # silent for an hour and sends it all at once is not worth waiting for, unless it happens again or continues for
        # half an hour. If most rows of the batch are late then, they are a backlog, and all of them are left out. While an
        # input is known to be behind, such rows are left out for as long as it is.
        lasting = not behind and (patient is None or newest - patient >= _LASTING * longest)
        backlog = not lasting and 2 * (counted.dropped - before.dropped) > arrivals.total
        closed = before.punctuation if backlog and before.punctuation is not None else patient
        windows, sample = self._sample(before, counted, arrivals, None if lasting else closed)
        drops = Drops(0, sum(sample.drops)) if backlog else sample.drops

        numbers, moved = _BUDGETS[self._counted], newest - before.newest
        pane = int((arrivals.pane_end - arrivals.pane_start).max())
        cycle = max(sample.earning, before.long.rows_in(pane + before.slack))
        longest_cycle = before.long.rows_in(pane + before.longest)
        half_life = max(numbers.long / self._share, _LONG_CYCLES * cycle, _LONGEST_CYCLES * longest_cycle)
        short_half_life = max(numbers.short / self._share, _SHORT_CYCLES * cycle)
        account = DropAccount(before.credit).after(sample.earning, drops, self._share, self._reserve, longest_cycle)
        measured = replace(
            counted,
            credit=account.credit,
            long=before.long.add_late(sample.late, sample.known, moved, half_life),
            short=before.short.add_late(sample.late, sample.known, moved, short_half_life),
            windows=windows,
        )
        adapted = self._adapted(measured, newest - before.since, pane, cycle)
        return replace(adapted, lag=self._lag(arrivals, adapted.slack, before.lag - moved))

    def _begun(self, counted: AdaptiveProgress, arrivals: PaneArrivals) -> AdaptiveProgress:
        """Return the state after the first batch, whose runs are remembered as if they had been batches."""
        runs = arrivals.runs or ()
        longest, newest, since = longest_delay(arrivals, self.max_slack), runs[-1].reached, runs[0].reached
        patient = int(arrivals.oldest.min()) if runs[0].delay is None else newest - longest
        begun = replace(
            counted, since=since, longest=longest, patient=patient, slack=longest, lagging=_lagging(arrivals)
        )
        pane = int((arrivals.pane_end - arrivals.pane_start).max())
        begun = replace(begun, learns=self._learns(begun, newest - since, pane))
        if self._counted == "windows" or len(runs) == 1:
            return begun
        numbers, long, short = _BUDGETS[self._counted], begun.long, begun.short
        cycle = arrivals.total / len(runs)
        half_life = max(numbers.long / self._share, _LONG_CYCLES * cycle)
        short_half_life = max(numbers.short / self._share, _SHORT_CYCLES * cycle)
        for run in runs:
            if run.before is not None:
                late, rows, moved = _late_in(run, None), run.arrivals.total, run.reached - run.before
                long = long.add_late(late, rows, moved, half_life)
                short = short.add_late(late, rows, moved, short_half_life)
        credit = DropAccount().after(arrivals.total, Drops(0, 0), self._share, self._reserve, 0.0).credit
        begun = replace(begun, long=long, short=short, credit=credit)
        if self._share * begun.seen >= self._reserve:  # a history, which may be all that comes
            begun = self._adapted(begun, newest - since, pane, cycle)
        return replace(begun, lag=self._lag(arrivals, begun.slack, 0))

    def _sample(
        self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: PaneArrivals, closed: Micros | None
    ) -> tuple[RecentWindows, _Sample]:
        """Return the recent windows after a batch, and the batch as the budget counts it.

        closed   rows of panes that end up to here are left out of the memories; None: no rows
        """
        newest, patient = before.newest, before.patient
        if newest is None or patient is None or counted.newest is None or counted.patient is None:
            raise ValueError("a batch before this one has set the newest time")
        if self._counted == "rows":
            relevant = arrivals if closed is None else arrivals.only(arrivals.pane_end > closed)
            late = late_by_slack(newest - before.lag - relevant.pane_end, relevant.rows)
            if counted.newest - newest > before.longest:  # so the next batch finds its rows further behind than these
                late = reduce(padded_sum, (_late_in(run, closed) for run in arrivals.runs or ()))
            unavoidable = counted.unavoidable - before.unavoidable
            drops = Drops(counted.dropped - before.dropped - unavoidable, unavoidable)
            return before.windows, _Sample(arrivals.total, relevant.total, late, drops)
        if arrivals.windows is None:  # held rows that a drain accepts: their windows are answered with them
            return before.windows, _Sample(0, 0, np.empty(0), Drops(0, 0))
        answered = patient if before.punctuation is None else before.punctuation
        clock = Clock(newest, counted.newest, answered, patient, closed, counted.patient)
        windows, found = before.windows.after(arrivals, arrivals.windows, clock)
        drops = Drops(found.amended - found.unavoidable, found.unavoidable)
        return windows, _Sample(found.passed, found.passed, found.late, drops)

    def _lag(self, arrivals: PaneArrivals, slack: Micros, least: Micros) -> Micros:
        """Return how far the slowest partitions are behind, if the slack is too small for what comes from them next.

        least   it is no less, because the memory has left out what was behind as far: it shrinks with the steps of the newest time
        """
        lag = max(arrivals.lag(self._share), least)
        return lag if lag > slack else 0

    def _punctuation(self, before: AdaptiveProgress, measured: AdaptiveProgress) -> Micros | None:  # noqa: ARG002
        if measured.newest is None or measured.learns:
            return None
        return measured.newest - min(measured.slack + measured.lag, max(measured.longest, measured.slack))

    def _learns(self, state: AdaptiveProgress, watched: Micros, pane: Micros) -> bool:
        """Return whether too few rows have come to judge the budget by, some of them late.

        watched   event time that has been observed: if few rows come, the policy does not wait forever
        """
        few = self._counted == "rows" and state.seen < self._enough
        return few and state.longest > 0 and watched < _LEARNING_CYCLES * (pane + state.longest)

    @property
    def _enough(self) -> int:
        """The least number of rows by which the budget is judged."""
        return math.ceil(_BUDGETS[self._counted].enough / self._share)

    def _longest(self, before: AdaptiveProgress, arrivals: PaneArrivals, newest: Micros) -> tuple[Micros, bool]:
        """Return the longest delay seen, and whether an input was behind by more than that.

        Delays of more than half its lag then count from where that input was, since the rest is due to the order of
        reading. Shorter ones are those of the other inputs: if its clock is behind, the policy must learn from them.
        """
        since, most = arrivals.waiting_since, self.max_slack
        if since is not None and (lag := newest - since) > before.longest:
            half = Length(lag // 2 if most is None else min(lag // 2, micros(most)))
            own = max(before.longest, largest_delay(since, arrivals, most), largest_delay(newest, arrivals, half))
            if lag > own:
                return own, True
        return max(before.longest, longest_delay(arrivals, most)), False

    def _adapted(self, state: AdaptiveProgress, watched: Micros, pane: Micros, cycle: float) -> AdaptiveProgress:
        """Return the state with the slack that follows from the memories and the account."""
        account = DropAccount(state.credit)
        reserve, enough = self._reserve, _BUDGETS[self._counted].enough
        share, earned = account.share(self._share, reserve, _ACCOUNT_CYCLES * cycle), self._share * state.seen
        # A stream that has just begun has not shown its long delays.
        passed = watched if earned >= reserve else watched // _EARLY_CYCLES
        slack, lately = state.long.slack_for(share, passed, pane, account.care(reserve), enough), False
        if slack is not None and account.in_debt(reserve, earned):
            recent = state.short.slack_for(share, watched, pane, enough=enough)
            lately = recent is None or recent > slack
            slack = None if recent is None else max(slack, recent)
        elif slack is not None and account.full(reserve):
            recent = state.short.slack_for(share, watched, pane, enough=enough)
            lately = recent is not None and recent < slack
            slack = slack if recent is None else min(slack, recent)
        known = slack is not None and slack <= state.longest
        chosen = state.longest if slack is None else min(slack, state.longest)
        learns = self._learns(state, watched, pane)
        would_drop = (state.short if lately else state.long).share_dropped_by(chosen)
        return replace(
            state, slack=chosen, share=share, would_drop=would_drop, known=known, lately=known and lately, learns=learns
        )

    def explain(self, state: AdaptiveProgress) -> str:
        """Return the reason for the current punctuation in one line."""
        if state.since is None:
            return "no row has come yet"
        if state.learns:
            return f"learning: {count(state.seen)} of {counted(self._enough, 'rows')} by which the budget is judged{clocks_off(state)}"
        lost = "dropped" if self._counted == "rows" else "amended"
        if state.known:
            memory = f"most recent {self._counted}" if state.lately else f"{self._counted} remembered"
            why = f"{span(state.slack)} would have {lost} {percent(state.would_drop)} of the {memory}"
        else:
            why = f"{span(state.slack)}, the longest delay seen, as K-slack"
        line = (
            f"{why}; {percent(state.share)} may be {lost}, the credit is {count(round(state.credit))} {self._counted}"
        )
        if self._counted == "windows" and state.windows.unavoidable:
            line += f"; of {count(state.windows.total)} amended {count(state.windows.unavoidable)} by rows later than any before them"
        if self._counted == "rows" and state.unavoidable:
            line += f"; of {count(state.dropped)} dropped {count(state.unavoidable)} were later than any before them"
        if state.lagging is not None:
            line += f"; most late rows are from {state.lagging}"
        return line + clocks_off(state)

    def figures(self, state: AdaptiveProgress) -> dict[str, float]:
        """Return the numbers in explain(): shares and numbers of rows or windows, and the longest delay in microseconds."""
        figures = {
            "share": state.share,
            "credit": state.credit,
            "would_drop": state.would_drop,
            "longest": state.longest,
            "unavoidable": state.unavoidable,
        }
        return figures if self._counted == "rows" else figures | {"amended": state.windows.total}


def _late_in(run: PaneRun, closed: Micros | None) -> FloatArray:
    """Return the rows of a run that each slack would have dropped, except for those of panes that are left out."""
    rows = run.arrivals if closed is None else run.arrivals.only(run.arrivals.pane_end > closed)
    return late_by_slack((run.before or 0) - rows.pane_end, rows.rows)


def _lagging(arrivals: PaneArrivals) -> str | None:
    late = sum(source.late for source in arrivals.sources.values())
    # Ties are broken by name: the order of the sources must not affect the state.
    worst = max(arrivals.sources, key=lambda name: (arrivals.sources[name].late, name), default=None)
    return worst if worst is not None and late and 2 * arrivals.sources[worst].late >= late else None
