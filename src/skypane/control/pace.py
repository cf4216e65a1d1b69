"""When the next micro-batch begins: once it can complete a window, not before.

    newest event time of each batch  ->  how far event time lies behind the clock where rows have just come
    event time at which the next window is complete  ->  the time at which its rows come  ->  a pause until then

A stream without pauses runs many batches that answer nothing. The policy pauses only while the stream is seen to keep
up: each batch has read all rows that there were, so its newest event time lies about as far behind the clock as that of
the batches before it. With a backlog, a replay in fast motion or a source that has stopped it does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.types import ConfigError, Micros
from skypane.wording import seconds

RECENT: Final = 8
"""Batches by which a stream is judged."""
FEWEST: Final = 4
"""Batches before the first pause."""
MOST: Final = 256
"""Batches before the next pause, at most: their number doubles with each pause in which no rows have come."""
DRIFT: Final = 0.2
"""Seconds by which a stream that keeps up may fall behind the clock, or come closer to it, in a second."""
ROWS: Final = 20_000
"""Rows that may gather in a pause, unless they come faster: more would make the batch that completes a window longer."""
SHORTEST: Final = 0.01
"""Seconds of the shortest pause."""
MISSED: Final = 0.25
"""Part of a batch by which the margin grows after a batch that began too early for its window."""
MET: Final = MISSED / 8
"""Part of a batch by which it shrinks after another one, so that about one batch in nine begins too early."""


@dataclass(frozen=True, slots=True)
class PacedBatch:
    """The observations of a batch.

    began   when it began, in seconds of a clock that never goes back
    rows    the rows that it read
    newest  the newest event time of the stream after it; None: no row yet
    due     the newest event time with which the next answer is due; None: any row may change an answer
    """

    began: float
    rows: int
    newest: Micros | None
    due: Micros | None


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The facts known at the end of a batch.

    now   seconds of the same clock
    rows_wait  whether the source reports rows that are in no batch yet
    """

    now: float
    rows_wait: bool = False


@dataclass(frozen=True, slots=True)
class PaceState(JsonState):
    """The last batches, oldest first, and what the last decision was.

    began, rows, newest  when they began, their rows, and how far the stream was after them
    seen    batches since there was nothing to judge by
    needed  batches that must be seen before a pause
    due     the newest event time with which the next answer is due
    paused  seconds of the pause after the last batch
    busy    seconds that the last batch took
    margin  seconds after the expected time at which a batch begins; less than 0: before it, while Spark plans the batch
    aimed   whether the last pause was to end when a window can be complete
    """

    began: tuple[float, ...] = ()
    rows: tuple[int, ...] = ()
    newest: tuple[Micros, ...] = ()
    seen: int = 0
    needed: int = FEWEST
    due: Micros | None = None
    paused: float = 0.0
    busy: float = 0.0
    margin: float = 0.0
    aimed: bool = False

    @property
    def behind(self) -> tuple[float, ...]:
        """Seconds by which the clock was past the newest event time when each batch began."""
        return tuple(began - newest / 1e6 for began, newest in zip(self.began, self.newest, strict=True))

    @property
    def span(self) -> float:
        """Seconds in which these batches began."""
        return self.began[-1] - self.began[0] if self.began else 0.0

    @property
    def drift(self) -> float:
        """Seconds by which the stream has fallen behind the clock in a second."""
        return (self.behind[-1] - self.behind[0]) / self.span if self.span > 0 else math.inf

    @property
    def rate(self) -> float:
        """Rows per second."""
        return sum(self.rows[1:]) / self.span if self.span > 0 else 0.0


@dataclass(frozen=True)
class Pace(Policy[PaceState, PacedBatch, BatchEnd, float]):
    """Decides for how many seconds a query pauses after a batch.

    longest   longest pause in seconds: if rows come sooner than those before them, an answer waits at most so long
    """

    longest: float = 2.0

    State = PaceState

    def __post_init__(self) -> None:
        if not self.longest > 0:
            raise ConfigError(f"longest must be more than 0 seconds, got {self.longest!r}")

    def init(self) -> PaceState:
        return PaceState()

    def observe(self, state: PaceState, measured: PacedBatch) -> PaceState:
        """Return the state after a batch; before the first row, nothing is known of the stream."""
        if measured.newest is None:
            return self.init()
        last = slice(1 - RECENT, None)
        after = replace(
            state,
            began=(*state.began[last], measured.began),
            rows=(*state.rows[last], measured.rows),
            newest=(*state.newest[last], measured.newest),
            seen=min(state.seen + 1, MOST),
            due=measured.due,
            paused=0.0,
            margin=_margin(state, measured.due),
            aimed=False,
        )
        if not state.paused:
            return after
        if _came_no_nearer(after, state.paused):
            return _judged_from_last(after, min(2 * state.needed, MOST))
        return replace(after, needed=FEWEST)

    def decide(self, state: PaceState, known: BatchEnd) -> tuple[PaceState, Decision[float]]:
        """Return the pause from now on, in seconds."""
        after = replace(state, busy=max(0.0, known.now - state.began[-1]) if state.began else 0.0)
        reason = self._no_pause(after, known)
        if reason is None:
            pause, reason, aimed = self._pause(after, known.now)
            after = replace(after, aimed=aimed)
        else:
            pause = 0.0
        after = replace(after, paused=pause)
        return after, Decision("pace", round(pause, 6), reason, {"margin": after.margin, "batch": after.busy})

    def _no_pause(self, state: PaceState, known: BatchEnd) -> str | None:
        """Return why the next batch begins at once whatever it can complete; None: it need not."""
        if known.rows_wait:
            return "rows wait at the source"
        if state.seen < state.needed:
            return f"{state.seen} of {state.needed} batches seen"
        if state.due is None:
            return "any row may change an answer"
        if not abs(state.drift) <= DRIFT:
            return "event time does not keep up with the clock, or is faster"
        return None

    def _pause(self, state: PaceState, now: float) -> tuple[float, str, bool]:
        """Return the pause, the reason, and whether it ends when the next window can be complete."""
        left = (state.due or 0) / 1e6 + min(state.behind) + state.margin - now
        if left < SHORTEST:
            return 0.0, "the next window can be complete", False
        because = f"the next window can be complete in {seconds(left)}"
        gathering = min(self.longest, ROWS / state.rate if state.rate > 0 else math.inf)
        if left <= gathering:
            return left, because, True
        batches = math.ceil(left / gathering)
        pause = (left - (batches - 1) * state.busy) / batches
        if pause < SHORTEST:
            return 0.0, f"{because}, and too many rows come until then", False
        return pause, f"{because}, in {batches} batches", False


def _came_no_nearer(state: PaceState, paused: float) -> bool:
    """Return whether the stream has fallen behind by the pause before the last batch, as if that had read a backlog."""
    *_, before, last = state.behind
    return last - before > max(paused, state.busy) / 2


def _judged_from_last(state: PaceState, needed: int) -> PaceState:
    """Return the state in which the stream is judged from its last batch on."""
    began, rows, newest = state.began[-1:], state.rows[-1:], state.newest[-1:]
    return replace(state, began=began, rows=rows, newest=newest, seen=1, needed=needed)


def _margin(state: PaceState, due: Micros | None) -> float:
    """Return the margin after a batch that has left the next answer due at `due`."""
    if not state.aimed or state.due is None:
        return state.margin
    met = due is not None and due > state.due
    changed = state.margin + (-MET if met else MISSED) * state.busy
    return min(max(changed, -state.busy), state.busy / 2)
