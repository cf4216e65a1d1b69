"""Readiness: a tuple is ready when every source has gone past its time (paper 2, definition 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from skypane.progress.arrivals import Arrivals
from skypane.progress.law import PunctuationLaw
from skypane.progress.state import Progress
from skypane.types import CheckpointError, ConfigError, Duration, Micros, micros
from skypane.wording import count, span


@dataclass(frozen=True)
class SourceProgress(Progress):
    """Progress, and the newest time of each source that counts, as far as it is believed."""

    sources: Mapping[str, Micros] = field(default_factory=dict)


@dataclass(frozen=True)
class Readiness(PunctuationLaw[SourceProgress]):
    """tp = the smallest, over the sources, of the newest time seen from each.

    It is exact where each source sends in order of time: no row of a source that counts is ever late, and none is
    waited for in vain. A source of which nothing has come while the others moved on by `idle_after` counts no longer,
    until it sends something as new as that; what it brings meanwhile is late or not as any other row. One that has
    never sent anything is not known, and is not waited for; unless it is named in `sources`: those are waited for from the
    beginning, however long. Where all are named, answers are the same for any interleaving of the sources and any cut into
    batches: rows are then late by their own source's order alone.

    The job names the source column.
    """

    idle_after: Duration
    _: KW_ONLY
    sources: tuple[str, ...] = ()

    needs_source: ClassVar[bool] = True
    _durations: ClassVar[tuple[str, ...]] = ("idle_after", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sources", tuple(self.sources))
        if micros(self.idle_after) <= 0:
            raise ConfigError(f"idle_after must be longer than 0, got {self.idle_after} microseconds")

    def init(self) -> SourceProgress:
        """Return the state before the first batch: no source is known."""
        return SourceProgress()

    def restore(self, snapshot: Mapping[str, Any]) -> SourceProgress:
        """Return the state whose snapshot() this is."""
        state = SourceProgress.restored(snapshot)
        if not isinstance(state.sources, dict) or any(type(time) is not int for time in state.sources.values()):
            raise CheckpointError(f"progress state needs the newest time of each source, got {state.sources!r}")
        return state

    def _measure(self, before: SourceProgress, counted: SourceProgress, arrivals: Arrivals) -> SourceProgress:
        newest = counted.newest
        if newest is None:
            return counted
        seen = dict(before.sources)
        for name, source in arrivals.sources.items():
            # A source whose clock is far ahead is as far as the stream is, no further.
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
        """Return in one line why the punctuation is where it is."""
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
        """Return the number of sources that count."""
        return {"sources": len(state.sources)}
