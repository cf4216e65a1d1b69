"""K-slack: wait as long as the latest tuple so far was late (paper 1, section 4.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skypane.progress.arrivals import Arrivals
from skypane.progress.future import DAY
from skypane.progress.law import PunctuationLaw, not_negative
from skypane.progress.state import Progress
from skypane.types import Duration, Micros, micros
from skypane.wording import span


@dataclass(frozen=True)
class KSlack(PunctuationLaw[Progress]):
    """K = the largest delay seen; tp = max(tp, tmax - K).

    A tuple's delay is how far it lies behind the newest time seen before its batch, which is admitted as a whole; the
    first batch has no delays. K is never smaller than a delay it has seen, so a tuple is dropped only if it is later
    than all before it, or in the time until tmax has moved on by as much as K grew: a punctuation cannot be taken back.

    `max_slack` is how late a tuple may be and still be waited for. Without it one tuple from 1970 would put K at half
    a century, and no pane would close again. A delay beyond it says nothing of what is worth waiting for, so it
    leaves K alone; such a tuple is late if its pane is closed, and counted. A day is the default because K, which
    only grows, is paid in latency on every window from then on; None waits for everything.
    """

    max_slack: Duration | None = DAY

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative("max_slack", self.max_slack)

    def init(self) -> Progress:
        """Return the state before the first batch: K is zero."""
        return Progress()

    def restore(self, snapshot: Mapping[str, Any]) -> Progress:
        """Return the state whose snapshot() this is; a slack beyond this law's bound is cut to it."""
        state = Progress.restored(snapshot)
        return state if self.max_slack is None else replace(state, slack=min(state.slack, micros(self.max_slack)))

    def _measure(self, before: Progress, counted: Progress, arrivals: Arrivals) -> Progress:
        if before.newest is None:
            return counted
        delay = largest_delay(before.newest, arrivals, self.max_slack)
        return replace(counted, slack=max(before.slack, delay))

    def explain(self, state: Progress) -> str:
        """Return in one line why the punctuation is where it is."""
        return f"{span(state.slack)}, the longest delay seen"


def largest_delay(tmax: Micros, arrivals: Arrivals, max_slack: Duration | None) -> Micros:
    """Return the largest delay worth waiting for; a pane that straddles max_slack counts as max_slack."""
    if max_slack is None:
        return max(0, tmax - int(arrivals.oldest.min()))
    most = micros(max_slack)
    waited_for = arrivals.oldest[tmax - arrivals.newest <= most]
    return max(0, min(most, tmax - int(waited_for.min()))) if len(waited_for) else 0


def tuple_grain(times: Iterable[Micros]) -> Iterator[Micros | None]:
    """Yield the punctuation in force after each tuple, by the paper's law as it stands.

    When tmax is updated, K takes in d(t) = tmax - t for all tuples t since the update before, with the tmax that the
    punctuation is made of too, and a punctuation is given only if it is progress. The batch law above differs in two
    ways: all tuples of a batch are held against the tmax before it, and K grows even when tmax does not.

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
