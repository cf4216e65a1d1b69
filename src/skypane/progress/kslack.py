"""K-slack: wait as long as the largest delay of a tuple so far (paper 1, section 4.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skypane.progress.far_future import DAY
from skypane.progress.pane_arrivals import PaneArrivals, PaneRun
from skypane.progress.slack_policy import SlackPolicy, clocks_off, not_negative
from skypane.progress.state import Progress
from skypane.types import Duration, Micros, micros
from skypane.wording import span


@dataclass(frozen=True)
class KSlack(SlackPolicy[Progress]):
    """K = the largest delay seen; tp = max(tp, tmax - K).

    A tuple's delay is how far it lies behind the newest time before its batch, or that when it was read, if the order of
    the batch is known; if that of the first one is not known, nothing is closed by it. K is at least every delay seen so
    far, so a tuple is dropped only if it is later than all before it, or while tmax advances by as much as K has grown,
    since the punctuation never goes back.

    tmax follows the stream, and not a few clocks that are ahead of the others (progress/frontier.py); with `max_ahead=None`
    it is the newest time of any tuple, as in the paper.

    `max_slack` is the largest delay that K takes in. Without it one tuple from 1970 would raise K to half a century,
    and no pane would close again. A larger delay leaves K unchanged; such a tuple is late, and counted, if its pane is
    closed. The default is a day, because K only grows and adds to the latency of all later windows. None: no limit.

    >>> progress = sp.KSlack()  # every row is waited for, as long as the longest delay so far
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", progress=progress
    ... )
    """

    #: Largest delay that K takes in; None: no limit.
    max_slack: Duration | None = DAY

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")
    _follows_frontier: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative("max_slack", self.max_slack)

    def restore(self, snapshot: Any) -> Progress:
        """Return the state that snapshot() wrote; a slack above this policy's `max_slack` is cut to it."""
        state: Progress = super().restore(snapshot)
        return state if self.max_slack is None else replace(state, slack=min(state.slack, micros(self.max_slack)))

    def _measure(self, before: Progress, counted: Progress, arrivals: PaneArrivals) -> Progress:
        return replace(counted, slack=max(before.slack, longest_delay(arrivals, self.max_slack)))

    def asks_order(self, state: Progress, arrivals: PaneArrivals) -> bool:
        """Return whether a row of a batch may be later than all so far behind one that came before it in the batch."""
        return may_exceed(state.slack, arrivals, self.max_slack)

    def explain(self, state: Progress) -> str:
        """Return the reason for the current punctuation in one line."""
        return f"{span(state.slack)}, the longest delay seen{clocks_off(state)}"


def may_exceed(longest: Micros, arrivals: PaneArrivals, max_slack: Duration | None) -> bool:
    """Return whether a row of a batch may be further than `longest` behind one that came before it in the batch."""
    return len(arrivals) > 0 and largest_delay(int(arrivals.newest.max()), arrivals, max_slack) > longest


def longest_delay(arrivals: PaneArrivals, max_slack: Duration | None) -> Micros:
    """Return the longest delay up to max_slack of the rows of a batch, in the order in which they were read."""
    return max(_delay(run, max_slack) for run in arrivals.runs or ())


def _delay(run: PaneRun, max_slack: Duration | None) -> Micros:
    """Return the longest delay up to max_slack of a row behind the newest time when it was read.

    It lies between the distance to the newest time before all rows of the run and that to the newest time after them.
    Within this the run's own delay decides, which may be due to a clock that is ahead, or to a row beyond max_slack.
    """
    if run.before is None:
        least, most = 0, largest_delay(run.reached, run.arrivals, max_slack)
    else:
        least = largest_delay(run.before, run.arrivals, max_slack)
        most = least + run.reached - run.before
    delay = max(least, min(run.delay or 0, most))
    return delay if max_slack is None else min(delay, micros(max_slack))


def largest_delay(tmax: Micros, arrivals: PaneArrivals, max_slack: Duration | None) -> Micros:
    """Return the largest delay up to max_slack; a pane that straddles max_slack counts as max_slack."""
    if max_slack is None:
        return max(0, tmax - int(arrivals.oldest.min()))
    most = micros(max_slack)
    waited_for = arrivals.oldest[tmax - arrivals.newest <= most]
    return max(0, min(most, tmax - int(waited_for.min()))) if len(waited_for) else 0


def tuple_grain(times: Iterable[Micros]) -> Iterator[Micros | None]:
    """Yield the punctuation in force after each tuple, by the paper's definition.

    When tmax is updated, K takes in d(t) = tmax - t for all tuples t since the last update, with the tmax that also
    gives the punctuation; a new punctuation is emitted only if it is larger. KSlack differs in two ways: it measures a
    tuple against the tmax before it, and K grows even if tmax does not.

    >>> list(tuple_grain([10, 12, 9, 11, 15, 16]))
    [10, 12, 12, 12, 12, 12]
    """
    tmax = punctuation = oldest = None
    slack = 0
    for time in times:
        if tmax is not None and time <= tmax:
            oldest = time if oldest is None else min(oldest, time)
        else:
            tmax = time
            slack, oldest = slack if oldest is None else max(slack, tmax - oldest), None
            punctuation = max(tmax - slack, tmax - slack if punctuation is None else punctuation)
        yield punctuation
