"""Readiness: a tuple is ready when every source has passed its time (paper 2, definition 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.slack_policy import SlackPolicy
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros
from skypane.wording import count, span


@dataclass(frozen=True)
class SourceProgress(Progress):
    """Progress, and the newest time of each active source, at most the newest time of the stream."""

    sources: Mapping[str, Micros] = field(default_factory=dict)


@dataclass(frozen=True)
class Readiness(SlackPolicy[SourceProgress]):
    """tp = the minimum, over the sources, of the newest time seen from each.

    It is exact if each source sends in order of time: no row of an active source is late, and no window waits longer
    than it must. A source becomes idle when it falls more than `idle_after` behind the newest time of the stream; it is
    active again once it sends a row within `idle_after`. Rows of an idle source are late by the same test as others.
    A source that has not sent a row is unknown and is not waited for, unless `sources` names it: named sources are
    waited for from the start, without a limit. If all sources are named, the answers are the same for any interleaving
    of the sources and any cut into batches: whether a row is late depends on the order of its own source only.

    The job must name the source column.
    """

    idle_after: Duration
    _: KW_ONLY
    sources: tuple[str, ...] = ()

    State = SourceProgress
    needs_source: ClassVar[bool] = True
    _durations: ClassVar[tuple[str, ...]] = ("idle_after", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sources", tuple(self.sources))
        if micros(self.idle_after) <= 0:
            raise ConfigError(f"idle_after must be longer than 0, got {self.idle_after} microseconds")

    def _measure(self, before: SourceProgress, counted: SourceProgress, arrivals: PaneArrivals) -> SourceProgress:
        newest = counted.newest
        if newest is None:
            return counted
        seen = dict(before.sources)
        for name, source in arrivals.sources.items():
            # The time of a source whose clock is far ahead is cut to that of the stream.
            seen[name] = max(seen.get(name, source.newest), min(source.newest, newest))
        idle_since = newest - micros(self.idle_after)
        counting = {
            name: min(time, newest) for name, time in seen.items() if time >= idle_since or name in self.sources
        }
        return replace(counted, sources=counting, slack=newest - min(counting.values(), default=newest))

    def _punctuation(self, before: SourceProgress, measured: SourceProgress) -> Micros | None:
        return None if self._silent(measured) else super()._punctuation(before, measured)

    def _silent(self, state: SourceProgress) -> list[str]:
        return [name for name in self.sources if name not in state.sources]

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"sources": list(self.sources)}

    def explain(self, state: SourceProgress) -> str:
        """Return the reason for the current punctuation in one line."""
        silent = self._silent(state)
        if silent:
            return f"waiting for the first row of {', '.join(silent)}"
        if not state.sources:
            return "no source is known"
        last = min(state.sources, key=lambda name: (state.sources[name], name))
        sources = f"{count(len(state.sources))} source{'s' if len(state.sources) > 1 else ''}"
        if state.slack == 0:
            return f"all of {sources} have come as far as the newest time"
        return f"{last}, the last of {sources}, is {span(state.slack)} behind the newest time"

    def figures(self, state: SourceProgress) -> dict[str, float]:
        """Return the number of active sources."""
        return {"sources": len(state.sources)}
