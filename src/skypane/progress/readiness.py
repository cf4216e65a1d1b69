"""Readiness: a tuple is ready when every source has passed its time (paper 2, definition 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self, cast

from skypane.progress.far_future import DAY
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.slack_policy import SlackPolicy, not_negative
from skypane.progress.state import Progress
from skypane.snapshots import ADDED
from skypane.types import Cadence, ConfigError, Duration, Length, Micros, micros
from skypane.wording import count, span

#: The least number of batches without a row after which a source is idle by a duration.
_BATCHES = 2


@dataclass(frozen=True)
class SourceProgress(Progress):
    """Progress, and how far each active source has come.

    sources   newest time of each active source, at most the newest time of the stream
    silent    of the active sources that sent nothing in the last batch: microseconds or batches since their last row
    arrived   when the last batch arrived; None: unknown
    """

    sources: Mapping[str, Micros] = field(default_factory=dict)
    silent: Mapping[str, int] = field(default_factory=dict, metadata=ADDED)
    arrived: Micros | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Readiness(SlackPolicy[SourceProgress]):
    """tp = the minimum, over the sources, of the newest time seen from each.

    It is exact if each source sends in order of its own clock, whatever the clocks of the others show: no row of an
    active source is late, and no window waits longer than it must. A source is idle when nothing has come from it for
    `idle_after`, and active again with its next row. Rows of an idle source are late by the same test as others. A
    source that has not sent a row is unknown and is not waited for, unless `sources` names it: named sources are waited
    for from the start, without a limit. If all sources are named, the answers are the same for any interleaving of the
    sources and any cut into batches: whether a row is late depends on the order of its own source only.

    `idle_after` is a duration by the clock of arrival, on Spark the time at which a micro-batch begins, or a number of
    micro-batches. With a duration, a source is idle after two batches without a row at the earliest, so that no source
    is idle because the job was stopped. `max_behind` is how far a source may be behind the newest time of the stream
    and still be waited for; with None, a clock in 1970 keeps all panes open.

    The job must name the source column.

    >>> progress = sp.Readiness("5 minutes")
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best",
    ...     progress=progress, source="city"
    ... )
    """

    #: Time or number of micro-batches without a row after which a source is no longer waited for.
    idle_after: Cadence
    _: KW_ONLY
    #: Sources that are waited for from the start.
    sources: tuple[str, ...] = ()
    #: How far a source may be behind the newest time and still be waited for; None: no limit.
    max_behind: Duration | None = DAY

    State = SourceProgress
    needs_source: ClassVar[bool] = True
    _durations: ClassVar[tuple[str, ...]] = ("max_behind", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needs_arrival:
            object.__setattr__(self, "idle_after", micros(cast("Duration", self.idle_after), "idle_after"))
        object.__setattr__(self, "sources", tuple(self.sources))
        not_negative("max_behind", self.max_behind)
        if self._limit <= 0:
            raise ConfigError(f"idle_after must be longer than 0, got {self.idle_after!r}")

    @property
    def needs_arrival(self) -> bool:
        """Whether the policy needs the time at which a batch arrives: `idle_after` is a duration."""
        return type(self.idle_after) is not int

    @property
    def _limit(self) -> int:
        """The silence after which a source is idle: microseconds or batches."""
        return cast("int", self.idle_after)

    def _measure(self, before: SourceProgress, counted: SourceProgress, arrivals: PaneArrivals) -> SourceProgress:
        newest = counted.newest
        if newest is None:
            return counted
        seen = dict(before.sources)
        for name, source in arrivals.sources.items():
            # The time of a source whose clock is far ahead is cut to that of the stream.
            seen[name] = max(seen.get(name, source.newest), min(source.newest, newest))
        silent = self._silence(before, arrivals)
        active = {name: min(time, newest) for name, time in seen.items()
                  if name in self.sources or self._waits_for(newest - time, silent.get(name, 0))}  # fmt: skip
        return replace(
            counted,
            sources=active,
            silent={name: passed for name, passed in silent.items() if name in active},
            arrived=before.arrived if arrivals.arrived is None else arrivals.arrived,
            slack=newest - min(active.values(), default=newest),
        )

    def _silence(self, before: SourceProgress, arrivals: PaneArrivals) -> dict[str, int]:
        """Return how long the sources without a row in this batch have been silent; a drain is not a batch."""
        if not arrivals.sources:
            return dict(before.silent)
        passed = self._passed(before.arrived, arrivals.arrived)
        return {name: before.silent.get(name, 0) + passed for name in before.sources if name not in arrivals.sources}

    def _passed(self, before: Micros | None, now: Micros | None) -> int:
        """Return by how much a batch prolongs a silence: 1 batch, or the time since the batch before, to a bound."""
        if not self.needs_arrival:
            return 1
        most = -(-self._limit // _BATCHES)
        return 0 if before is None or now is None else min(max(now - before, 0), most)

    def _waits_for(self, behind: Micros, silence: int) -> bool:
        return silence < self._limit and (self.max_behind is None or behind <= micros(self.max_behind))

    def _punctuation(self, before: SourceProgress, measured: SourceProgress) -> Micros | None:
        return None if self._unheard(measured) else super()._punctuation(before, measured)

    def _unheard(self, state: SourceProgress) -> list[str]:
        return [name for name in self.sources if name not in state.sources]

    def describe(self) -> dict[str, Any]:
        batches = {} if self.needs_arrival else {"idle_after": f"{self.idle_after} batches"}
        return super().describe() | {"sources": list(self.sources)} | batches

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Self:
        idle = description["idle_after"]
        after = Length(idle) if isinstance(idle, int) else int(idle.removesuffix(" batches"))
        return super().described({**description, "idle_after": after, "sources": tuple(description["sources"])})

    def explain(self, state: SourceProgress) -> str:
        """Return the reason for the current punctuation in one line."""
        unheard = self._unheard(state)
        if unheard:
            return f"waiting for the first row of {', '.join(unheard)}"
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
