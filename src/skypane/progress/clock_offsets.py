"""The clocks of sources, learned from the times that they show: how far each is ahead of the stream, or behind it.

A source's *lead* in a batch is its newest time minus that of the stream. Rows that are late make it smaller, and nothing
but the clock makes it larger. So the largest lead of a few batches is that of the clock, as a time server is measured by
the answer that was fastest. A clock is off if its largest leads stay alike, and beyond a bound, while the stream moves on:

- Leads are measured from that of most sources, the median of the last leads of the `HEARD` sources heard last: where
  wrong clocks have moved the newest time of the stream, all right ones are as far behind it. If fewer than `FEWEST`
  sources are known, nobody can say whose clock is off, and none is judged.
- A right clock is *near*: within the bound, within twice the median distance of these leads from their median, or within
  the time that a source with so few rows in a batch may have been silent at its end: the time that the batch has moved the
  stream, or twice that by the number of its rows.
- `WINDOW` batches of the source make a window, with the largest lead in it.
- The offset is learned after `WINDOWS` windows whose largest leads differ by at most the bound, over at least `STEADY`
  bounds of the stream's time. So a source that catches up by more than a tenth of the time that passes is not off.
- A learned offset follows those of later windows, so a clock that drifts is followed.
- It is forgotten after `AGAINST` batches in succession that refute it: the source agrees with the stream, or is farther
  ahead than its clock would have it.

Sources within the bound need no entry, so the state holds those that are off alone, and at most `MOST` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Literal, NamedTuple, Self
from zlib import crc32

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.snapshots import ADDED, JsonState
from skypane.types import TICKS_PER_SECOND, Length, Micros
from skypane.wording import count, span

Clocks = Literal["accept", "align", "quarantine"]
"""How rows enter whose source has a clock that is off: as they are, corrected, or not at all."""
CLOCKS: tuple[Clocks, ...] = ("accept", "align", "quarantine")

WINDOW = 4
WINDOWS = 3
STEADY = 10
AGAINST = 2
MOST = 500
HEARD = 64
FEWEST = 3
MINUTE = Length(60_000_000)
#: The part of MOST that learned clocks may take: those heard last. The rest is for clocks that are being learned.
_LEARNED = MOST * 3 // 4
#: Offsets are whole seconds, and the bound is at least one, so that they can be subtracted from timestamps of any unit.
GRAIN = TICKS_PER_SECOND["us"]


@dataclass(frozen=True, slots=True)
class ClockRules:
    """The treatment of rows whose sources have clocks that are off.

    offsets   by source: how far its clock is ahead, in microseconds and whole seconds; negative: behind
    align     whether the offset is subtracted from the event times; else the rows are quarantined
    """

    offsets: Mapping[str, Micros]
    align: bool


class SourceClock(NamedTuple):
    """The measurements of the clock of one source; times and leads in microseconds.

    offset         the learned offset, None: not learned yet
    low, high      range of the largest leads of the windows so far that are alike; None: no window is complete
    windows        number of these windows, and `since`, the newest time of the stream when they began
    best, batches  largest lead and number of batches of the incomplete window
    against        batches in succession that refute the offset
    heard          newest time of the stream when the source was last heard
    """

    offset: Micros | None
    low: Micros | None
    high: Micros | None
    windows: int
    since: Micros
    best: Micros
    batches: int
    against: int
    heard: Micros

    @classmethod
    def first(cls, lead: Micros, newest: Micros) -> Self:
        """Return the clock after one batch."""
        return cls(None, None, None, 0, newest, lead, 1, 0, newest)

    def after(self, lead: Micros, newest: Micros, bound: Micros, near: Micros) -> SourceClock | None:
        """Return the clock after one more batch of the source; None: it is not off.

        near   how far a right clock may be from the stream in this batch, at least `bound`
        """
        against = self.against + 1 if self._is_refuted(lead, bound, near) else 0
        if against == AGAINST:
            return None
        best = lead if not self.batches else max(self.best, lead)
        clock = self._replace(best=best, batches=self.batches + 1, against=against, heard=newest)
        return _windowed(clock, newest, bound, near) if clock.batches >= WINDOW else clock

    def _is_refuted(self, lead: Micros, bound: Micros, near: Micros) -> bool:
        if self.offset is None:
            return abs(lead) <= near
        return abs(lead) <= min(bound, abs(self.offset) // 4) or lead > self.offset + bound


@dataclass(frozen=True)
class ClockOffsets(JsonState):
    """The sources whose clocks are off, or may be."""

    clocks: Mapping[str, SourceClock] = field(default_factory=dict)
    #: The last leads of the sources heard last, at most HEARD: most of them are those of right clocks.
    heard: Mapping[str, Micros] = field(default_factory=dict, metadata=ADDED)

    def after(self, arrivals: PaneArrivals, before: Micros | None, newest: Micros, bound: Micros) -> Self:
        """Return the clocks after a batch that has moved the newest time of the stream from `before` to `newest`."""
        shown = {name: source.newest for name, source in arrivals.sources.items()} | dict(arrivals.shown)
        if not shown:
            return self
        leads = {name: time - newest for name, time in shown.items()}
        all_leads = leads | {name: lead for name, lead in self.heard.items() if name not in leads}
        heard = _last_heard(leads, self.heard)
        if len(all_leads) < FEWEST:
            return replace(self, heard=heard)
        most = median_low(all_leads.values())
        apart = most if abs(most) > bound else 0
        spread = median_low(abs(lead - most) for lead in all_leads.values())
        moved = 0 if before is None else newest - before
        clocks = dict(self.clocks)
        for name, raw in leads.items():
            known, lead, near = clocks.get(name), raw - apart, bound
            if known is None or known.offset is None:
                near = max(bound, 2 * spread, min(moved, 2 * moved // arrivals.sources[name].rows))
            if known is None and abs(lead) <= near:
                continue
            clock = SourceClock.first(lead, newest) if known is None else known.after(lead, newest, bound, near)
            if clock is None:
                del clocks[name]
            else:
                clocks[name] = clock
        return type(self)(_most(clocks), heard)

    @property
    def learned(self) -> dict[str, Micros]:
        """The learned offsets, in microseconds, by source."""
        return {name: clock.offset for name, clock in self.clocks.items() if clock.offset is not None}

    def figures(self) -> dict[str, float]:
        """Return the number of clocks that are off, and the farthest offset in microseconds; {} if none is."""
        learned = self.learned
        return {"clocks_off": len(learned), "farthest_clock": max(learned.values(), key=abs)} if learned else {}

    def phrase(self, done: str) -> str:
        """Return "; the clock of meter 17 is about 1 h ahead, its rows are `done`", or nothing if no clock is off."""
        learned = self.learned
        if not learned:
            return ""
        name = max(learned, key=lambda name: (abs(learned[name]), name))
        side = "ahead" if learned[name] > 0 else "behind"
        line = f"; the clock of {name} is about {span(abs(learned[name]))} {side}, its rows are {done}"
        return line if len(learned) == 1 else f"{line}, and those of {count(len(learned) - 1)} more"


def _last_heard(now: Mapping[str, Micros], before: Mapping[str, Micros]) -> Mapping[str, Micros]:
    """Return the leads of at most HEARD sources, those of this batch first; of too many a sample by name."""
    if len(now) > HEARD:
        return {name: now[name] for name in sorted(now, key=lambda name: (crc32(name.encode()), name))[:HEARD]}
    others = [name for name in before if name not in now]
    kept = others[max(0, len(others) + len(now) - HEARD) :]
    return {name: before[name] for name in kept} | {name: now[name] for name in sorted(now)}


def _windowed(clock: SourceClock, newest: Micros, bound: Micros, near: Micros) -> SourceClock | None:
    """Return the clock at the end of a window; None: it is not off."""
    best = clock.best
    if abs(best) <= near:
        return None
    low = best if clock.low is None else min(clock.low, best)
    high = best if clock.high is None else max(clock.high, best)
    if high - low > bound:
        return clock._replace(low=best, high=best, windows=1, since=newest, batches=0)
    clock = clock._replace(low=low, high=high, windows=clock.windows + 1, batches=0)
    if clock.windows < WINDOWS or newest - clock.since < STEADY * bound:
        return clock
    moved = clock.offset is None or abs(best - clock.offset) > bound // 4
    return clock._replace(offset=_whole(best)) if moved else clock


def _whole(offset: Micros) -> Micros:
    """Return an offset in whole seconds, rounded down."""
    return offset // GRAIN * GRAIN


def _most(clocks: dict[str, SourceClock]) -> dict[str, SourceClock]:
    """Return at most MOST of the clocks."""
    if len(clocks) <= MOST:
        return clocks
    learned = [name for name in clocks if clocks[name].offset is not None]
    others = [name for name in clocks if clocks[name].offset is None]
    learned.sort(key=lambda name: (-clocks[name].heard, name))
    others.sort(key=lambda name: (-clocks[name].windows, -clocks[name].batches, -abs(clocks[name].best), name))
    kept = learned[:_LEARNED]
    return {name: clocks[name] for name in [*kept, *others[: MOST - len(kept)]]}
