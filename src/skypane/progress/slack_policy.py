"""Common step of the progress policies: hold rows of the far future, count, then choose the slack."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, cast

from skypane.policy import Decision
from skypane.progress.clock_offsets import CLOCKS, GRAIN, MINUTE, ClockOffsets, ClockRules, Clocks
from skypane.progress.far_future import DAY, PATIENCE, SUPPORT, FutureBound, FutureDecision
from skypane.progress.frontier import Frontier
from skypane.progress.pane_arrivals import PaneArrivals, PaneRun
from skypane.progress.progress_policy import ProgressPolicy, Punctuation
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Length, Micros, micros
from skypane.wording import span

S = TypeVar("S", bound=Progress)

_DONE: Final[Mapping[Clocks, str]] = {"accept": "accepted", "align": "corrected", "quarantine": "quarantined"}


@dataclass(frozen=True, kw_only=True)
class SlackPolicy(ProgressPolicy, Generic[S]):
    """Base of policies with punctuation = newest time - slack, never decreasing; subclasses set the slack.

    Durations may be given as texts or timedeltas; they are stored in microseconds.
    """

    #: How far beyond the rest a row may lie before it is held; None turns the bound off.
    max_ahead: Duration | None = DAY
    #: By how many rows the held ones must outnumber the others before the stream follows them.
    support: int = SUPPORT
    #: After how many rows of a stream that continues without them held rows are quarantined.
    patience: int = PATIENCE

    #: The treatment of rows of a source whose clock is off: "accept" them, "align" their times, or "quarantine" them.
    clocks: Clocks = "accept"
    #: How far a clock may be ahead of the stream, or behind it, and still be right; offsets within it are not corrected.
    max_clock_offset: Duration = MINUTE

    State: ClassVar[type[Progress]] = Progress
    _durations: ClassVar[tuple[str, ...]] = ("max_ahead",)
    #: Whether tmax is the frontier of the stream (progress/frontier.py), unless max_ahead is None, or the newest time of any row.
    #: Where clocks are judged it is the frontier: a clock that is kept out must not have moved the punctuation.
    _follows_frontier: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in (*self._durations, "max_clock_offset"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, micros(value, name))
        self._bound()  # raises ConfigError on invalid values
        if self.clocks not in CLOCKS:
            raise ConfigError(f"clocks must be one of {', '.join(CLOCKS)}, got {self.clocks!r}")
        if micros(self.max_clock_offset) < GRAIN:
            raise ConfigError(f"max_clock_offset must be at least 1 second, got {self.max_clock_offset!r}")

    def _bound(self) -> FutureBound:
        max_ahead = None if self.max_ahead is None else micros(self.max_ahead)
        return FutureBound(max_ahead, self.support, self.patience)

    @property
    def judges_clocks(self) -> bool:
        """Whether rows of sources whose clocks are off are corrected or quarantined."""
        return self.clocks != "accept"

    def clock_rules(self, state: S) -> ClockRules | None:
        """Return the treatment of rows of sources whose clocks are off, in the batch after `state`; None: nothing."""
        learned = state.offsets.learned if self.judges_clocks else {}
        return ClockRules(learned, align=self.clocks == "align") if learned else None

    def init(self) -> S:
        """Return the state before the first batch."""
        return cast("S", self.State())

    @abstractmethod
    def _measure(self, before: S, counted: S, arrivals: PaneArrivals) -> S:
        """Return `counted`, the state with the batch counted, with the slack that the policy chooses.

        The runs of `arrivals`, at least one, have the newest time before and after them.
        """

    def decide(self, state: S, known: PaneArrivals) -> tuple[S, Decision[Punctuation]]:
        """Return the state after a batch, and which panes are held and closed from now on."""
        future = self._bound().judge(_reached(state), state.held, known, state.accepted)
        accepted = known.upto(future.limit)
        if future.followed.panes:
            accepted = accepted.followed_by(future.followed.arrivals().upto(future.limit))
        return self._decided(state, future, accepted)

    def settle(self, state: S) -> tuple[S, Decision[Punctuation]]:
        """Return the state after a drain has accepted or abandoned the held panes, and the decision on them."""
        newest = _reached(state)
        if newest is None or not state.held.panes:
            future = FutureDecision(None, state.held)
        else:
            future = self._bound().settle(newest, state.seen, state.held, state.pauses)
        return self._decided(state, future, future.followed.arrivals())

    def _decided(self, state: S, future: FutureDecision, accepted: PaneArrivals) -> tuple[S, Decision[Punctuation]]:
        if future.held is not state.held or future.abandoned.panes:
            state = replace(state, held=future.held, abandoned=state.abandoned + future.abandoned.rows)
        if len(accepted):
            state = self._moved(state, accepted)
        elif accepted.shown and state.newest is not None:  # only rows of clocks that are off: they may be right by now
            state = replace(state, offsets=self._offsets(state, accepted, state.newest))
        punctuation = Punctuation(state.punctuation, future)
        because = f"{self.explain(state)}{state.offsets.phrase(_DONE[self.clocks]) if self.judges_clocks else ''}"
        return state, Decision("progress", punctuation, because, self.figures(state) | state.offsets.figures())

    def _moved(self, state: S, accepted: PaneArrivals) -> S:
        pauses = state.pauses.after(state.newest, state.seen, accepted, self.support)
        runs, frontier = self._steps(state, accepted)
        newest = runs[-1].reached
        late = accepted.late(state.punctuation)
        seen, dropped = state.seen + accepted.total, state.dropped + late
        offsets = self._offsets(state, accepted, newest)
        latest = int(accepted.pane_start.max())
        counted = replace(
            state,
            accepted=latest if state.accepted is None else max(state.accepted, latest),
            newest=newest,
            seen=seen,
            dropped=dropped,
            pauses=pauses,
            frontier=frontier,
            clocks=state.clocks.after(accepted.sources, newest).without(offsets.learned if self.judges_clocks else ()),
            offsets=offsets,
        )
        measured = self._measure(state, counted, replace(accepted, runs=runs))
        if state.newest is None and runs[0].delay is None:
            return measured  # how late rows are is not known before the next batch
        given = [time for time in (state.punctuation, self._punctuation(state, measured)) if time is not None]
        return replace(measured, punctuation=max(given, default=None))

    def _offsets(self, state: S, accepted: PaneArrivals, newest: Micros) -> ClockOffsets:
        return state.offsets.after(accepted, state.newest, newest, micros(self.max_clock_offset))

    def _steps(self, state: S, accepted: PaneArrivals) -> tuple[tuple[PaneRun, ...], Frontier]:
        """Return the runs of a batch with the newest time before and after each, and the frontier after them."""
        newest, frontier, runs = state.newest, state.frontier, list[PaneRun]()
        inside = self.asks_order(state, accepted)
        at_once = PaneRun(accepted, None if inside and accepted.runs is None else 0)
        for run in (accepted.runs if inside else None) or (at_once,):
            before, rows = newest, replace(run.arrivals, sources=accepted.sources)
            if self.judges_clocks or (self._follows_frontier and self.max_ahead is not None):
                newest, frontier = frontier.after(before, rows, self.support)
            else:
                reached = int(rows.newest.max())
                newest = reached if before is None else max(before, reached)
            runs.append(replace(run, arrivals=rows, before=before, newest=newest))
        return tuple(runs), frontier

    def _punctuation(self, before: S, measured: S) -> Micros | None:  # noqa: ARG002
        """Return the punctuation by the slack, which may be below the current one; None: no punctuation yet."""
        return None if measured.newest is None else measured.newest - measured.slack

    def explain(self, state: S) -> str:
        """Return the reason for the current punctuation in one line."""
        return f"{span(state.slack)} behind the newest time{clocks_off(state)}"

    def figures(self, state: S) -> dict[str, float]:  # noqa: ARG002
        """Return the numbers in explain(): rows, shares of rows, or microseconds."""
        return {}

    def close(self, state: S, time: Micros) -> S:
        """Return the state after an external punctuation at `time`: the stream is complete before it."""
        return replace(state, punctuation=time if state.punctuation is None else max(state.punctuation, time))

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and fields as a JSON object."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"policy": type(self).__name__, **values}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Self:
        lengths = {*cls._durations, "max_clock_offset"}
        values: dict[str, Any] = {name: value for name, value in description.items() if name != "policy"}
        return cls(**values | {name: Length(values[name]) for name in lengths if values[name] is not None})


def _reached(state: Progress) -> Micros | None:
    """Return the later of the newest time and the punctuation, which an external one may have moved beyond it."""
    if state.newest is None or state.punctuation is None:
        return state.newest
    return max(state.newest, state.punctuation)


def clocks_off(state: Progress) -> str:
    """Return the end of an explanation that names a clock that is off, or nothing."""
    phrase = str(state.clocks)
    return f"; {phrase}" if phrase else ""


def not_negative(name: str, value: Duration | None) -> None:
    """Raise ConfigError if a duration is negative."""
    if value is not None and micros(value, name) < 0:
        raise ConfigError(f"{name} must not be negative, got {micros(value, name)!r}")
