"""Common step of the progress policies: hold rows of the far future, count, then choose the slack."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar, cast

from skypane.policy import Decision
from skypane.progress.far_future import DAY, PATIENCE, SUPPORT, FutureBound, FutureDecision
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.progress_policy import ProgressPolicy, Punctuation
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros
from skypane.wording import span

S = TypeVar("S", bound=Progress)


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

    State: ClassVar[type[Progress]] = Progress
    _durations: ClassVar[tuple[str, ...]] = ("max_ahead",)

    def __post_init__(self) -> None:
        for name in self._durations:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, micros(value, name))
        self._bound()  # raises ConfigError on invalid values

    def _bound(self) -> FutureBound:
        max_ahead = None if self.max_ahead is None else micros(self.max_ahead)
        return FutureBound(max_ahead, self.support, self.patience)

    def init(self) -> S:
        """Return the state before the first batch."""
        return cast("S", self.State())

    @abstractmethod
    def _measure(self, before: S, counted: S, arrivals: PaneArrivals) -> S:
        """Return `counted`, the state with the batch counted, with the slack that the policy chooses."""

    def decide(self, state: S, known: PaneArrivals) -> tuple[S, Decision[Punctuation]]:
        """Return the state after a batch, and which panes are held and closed from now on."""
        future = self._bound().judge(_reached(state), state.held, known)
        accepted = known.upto(future.limit)
        if future.followed.panes:
            accepted = accepted.union(future.followed.arrivals().upto(future.limit))
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
        punctuation = Punctuation(state.punctuation, future)
        return state, Decision("progress", punctuation, self.explain(state), self.figures(state))

    def _moved(self, state: S, accepted: PaneArrivals) -> S:
        pauses = state.pauses.after(state.newest, state.seen, accepted, self.support)
        newest = int(accepted.newest.max())
        newest = newest if state.newest is None else max(state.newest, newest)
        late = accepted.late(state.punctuation)
        seen, dropped = state.seen + accepted.total, state.dropped + late
        counted = replace(state, newest=newest, seen=seen, dropped=dropped, pauses=pauses)
        measured = self._measure(state, counted, accepted)
        given = [time for time in (state.punctuation, self._punctuation(state, measured)) if time is not None]
        return replace(measured, punctuation=max(given, default=None))

    def _punctuation(self, before: S, measured: S) -> Micros | None:  # noqa: ARG002
        """Return the punctuation by the slack, which may be below the current one; None: no punctuation yet."""
        return None if measured.newest is None else measured.newest - measured.slack

    def explain(self, state: S) -> str:
        """Return the reason for the current punctuation in one line."""
        return f"{span(state.slack)} behind the newest time"

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


def _reached(state: Progress) -> Micros | None:
    """Return the later of the newest time and the punctuation, which an external one may have moved beyond it."""
    if state.newest is None or state.punctuation is None:
        return state.newest
    return max(state.newest, state.punctuation)


def not_negative(name: str, value: Duration | None) -> None:
    """Raise ConfigError if a duration is negative."""
    if value is not None and micros(value, name) < 0:
        raise ConfigError(f"{name} must not be negative, got {micros(value, name)!r}")
