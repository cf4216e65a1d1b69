"""The step that the punctuation laws share: bound, count, then let the law choose the slack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from skypane.progress.arrivals import Arrivals
from skypane.progress.future import DAY, SUPPORT, FutureBound
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros

S = TypeVar("S", bound=Progress)


@dataclass(frozen=True, kw_only=True)
class PunctuationLaw(ABC, Generic[S]):
    """Punctuation = newest time - slack, never going back; a law says what the slack is after each batch.

    Fields that are durations may be given as texts or timedeltas, and are kept in microseconds.
    """

    #: How far beyond the rest a row may lie before it is put aside; None turns the bound off.
    max_ahead: Duration | None = DAY
    #: By how many rows those beyond the bound must outnumber the others before the stream is taken to have jumped.
    support: int = SUPPORT

    _durations: ClassVar[tuple[str, ...]] = ("max_ahead",)

    def __post_init__(self) -> None:
        for name in self._durations:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, micros(value, name))
        self._bound()  # raises if it cannot be

    def _bound(self) -> FutureBound:
        return FutureBound(None if self.max_ahead is None else micros(self.max_ahead), self.support)

    @property
    def drop_budget(self) -> float | None:
        """Largest share of rows that may be dropped; None: this law promises nothing about it."""
        return None

    @abstractmethod
    def init(self) -> S:
        """Return the state before the first batch."""

    @abstractmethod
    def restore(self, snapshot: Mapping[str, Any]) -> S:
        """Return the state whose snapshot() this is; raise CheckpointError if it cannot be one."""

    @abstractmethod
    def _measure(self, before: S, counted: S, arrivals: Arrivals) -> S:
        """Return `counted`, the state with the batch counted in, with the slack that the law finds right now."""

    def limit(self, state: S, arrivals: Arrivals) -> Micros | None:
        """Return the newest pane start that this batch may bring, or None for no bound."""
        return self._bound().judge(state.newest, state.votes, arrivals.whole()).limit

    def step(self, state: S, arrivals: Arrivals) -> S:
        """Return the state after a batch; cut at limit() or not, the answer is the same."""
        whole = arrivals.whole()
        verdict = self._bound().judge(state.newest, state.votes, whole)
        believed = whole.upto(verdict.limit)
        if not len(believed):
            return replace(state, votes=verdict.votes)
        newest = int(believed.newest.max())
        newest = newest if state.newest is None else max(state.newest, newest)
        counted = replace(
            state,
            newest=newest,
            seen=state.seen + believed.total,
            dropped=state.dropped + believed.late(state.punctuation),
            votes=verdict.votes,
        )
        measured = self._measure(state, counted, believed)
        punctuation = newest - measured.slack
        if state.punctuation is not None:
            punctuation = max(state.punctuation, punctuation)
        return replace(measured, punctuation=punctuation)

    def close(self, state: S, time: Micros) -> S:
        """Return the state after a punctuation at `time` that comes from outside: nothing older is awaited."""
        return replace(state, punctuation=time if state.punctuation is None else max(state.punctuation, time))

    def describe(self) -> dict[str, Any]:
        """Return the law's name and fields as a JSON object."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"policy": type(self).__name__, **values}


def not_negative(name: str, value: Duration | None) -> None:
    """Raise ConfigError if a length of time is below zero."""
    if value is not None and micros(value, name) < 0:
        raise ConfigError(f"{name} must not be negative, got {micros(value, name)!r}")
