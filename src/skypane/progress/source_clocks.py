"""Sources whose clocks disagree with the stream: a statement for people, which decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from skypane.progress.pane_arrivals import SourceCount
from skypane.snapshots import JsonState
from skypane.types import Micros
from skypane.wording import count, span

#: Sources that are remembered, the ones that are off in the most batches first; the state must not grow with a fleet.
MOST = 100
#: In how many of its batches a source must be off, without one in which it is not, to be reported.
BATCHES = 3
#: The farthest offset of a clock is less than so many times the nearest; otherwise its rows are late, not its clock.
_CONSTANT = 2


class ClockOffset(NamedTuple):
    """How far a source's newest time was from the stream's, at least and at most, and in how many batches.

    The offsets are in microseconds, both positive (ahead) or both negative (behind).
    """

    nearest: Micros
    farthest: Micros
    batches: int

    @property
    def constant(self) -> bool:
        """Whether this is the offset of a clock."""
        return self.batches >= BATCHES and abs(self.farthest) < _CONSTANT * abs(self.nearest)


@dataclass(frozen=True)
class SourceClocks(JsonState):
    """The sources all of whose rows have been beyond the newest time, or late, since they were first.

    A source that has rows in between leaves. So a source that is late once, or held back for a while, is reported at
    most for as long as it is.
    """

    off: Mapping[str, ClockOffset] = field(default_factory=dict)

    def after(self, sources: Mapping[str, SourceCount], newest: Micros) -> Self:
        """Return the sources that are off after a batch with these `sources`, after which the newest time is `newest`."""
        if not self.off and not any(_is_off(source, newest) for source in sources.values()):
            return self
        off = {name: offset for name, offset in self.off.items() if name not in sources}
        for name, source in sources.items():
            if _is_off(source, newest):
                off[name] = _with(self.off.get(name), source.newest - newest)
        if len(off) > MOST:
            ranked = sorted(off, key=lambda name: (-off[name].batches, -abs(off[name].nearest), name))
            off = {name: off[name] for name in ranked[:MOST]}
        return type(self)(off)

    def without(self, names: Collection[str]) -> Self:
        """Return the sources that are off, without those of these names."""
        if self.off.keys().isdisjoint(names):
            return self
        return type(self)({name: offset for name, offset in self.off.items() if name not in names})

    def __str__(self) -> str:
        """Return the source that is farthest off in one phrase: "the clock of meter 17 is about 1 h ahead", else ""."""
        constant = {
            name: (offset.nearest + offset.farthest) // 2 for name, offset in self.off.items() if offset.constant
        }
        if not constant:
            return ""
        name = max(constant, key=lambda name: (abs(constant[name]), name))
        by = constant[name]
        phrase = f"the clock of {name} is about {span(_rounded(abs(by)))} {'ahead' if by > 0 else 'behind'}"
        return phrase if len(constant) == 1 else f"{phrase}, {count(len(constant) - 1)} more are off"


def _rounded(length: Micros) -> Micros:
    """Return a length with three significant digits."""
    return round(length, 3 - len(str(length)))


def _is_off(source: SourceCount, newest: Micros) -> bool:
    return source.newest > newest or 0 < source.rows == source.late


def _with(before: ClockOffset | None, by: Micros) -> ClockOffset:
    if before is None or (before.nearest > 0) != (by > 0):
        return ClockOffset(by, by, 1)
    nearest, farthest = sorted((before.nearest, before.farthest, by), key=abs)[::2]
    return ClockOffset(nearest, farthest, before.batches + 1)
