"""Paper 3's Algorithm 1: streams leave overloaded readers, and with the new ones they are packed into those with room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from skypane.control.admission.packing import best_fit
from skypane.control.admission.strategies import Limits, Reader, Strategy, Stream

_WORTH_MOVING = 0.1
"""Share of the capacity by which another reader must have more room, where no reader takes a stream: else it stays."""


@dataclass(frozen=True, slots=True)
class Move:
    """A stream's way to a reader; `source` is None for one that has just come."""

    stream: str
    source: int | None
    to: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which reader reads which streams from now on, and what changed: moves include new streams.

    readers   number -> names; none is empty
    added     readers that were not there
    """

    readers: dict[int, tuple[str, ...]]
    moves: tuple[Move, ...] = ()
    added: tuple[int, ...] = ()

    @property
    def redirected(self) -> tuple[Move, ...]:
        """Moves of streams that another reader read before."""
        return tuple(move for move in self.moves if move.source is not None)


@dataclass
class _Places:
    """Who reads what while it is changed."""

    strategy: Strategy
    limits: Limits
    streams: dict[int, dict[str, Stream]]
    homes: dict[str, int] = field(default_factory=dict)
    added: list[int] = field(default_factory=list)

    def load(self, number: int) -> float:
        return self.strategy.load(self.streams[number].values())

    def room(self, number: int) -> float:
        return self.limits.capacity - self.load(number)

    def put(self, stream: Stream, number: int) -> None:
        self.streams[number][stream.name] = stream

    def new(self) -> int | None:
        """Return a reader more, or None if there may be none."""
        if self.limits.most is not None and len(self.streams) >= self.limits.most:
            return None
        number = next(number for number in count(1) if number not in self.streams)
        self.streams[number] = {}
        self.added.append(number)
        return number


def place(strategy: Strategy, readers: Sequence[Reader], new: Sequence[Stream], limits: Limits) -> Assignment:
    """Return the assignment for the next period (Algorithm 1, line by line).

    A stream that fits nowhere gets a reader of its own; where no more may be had, the one with the most room.
    """
    places = _Places(strategy, limits, {reader.number: _by_name(reader.streams) for reader in readers})
    places.homes = {stream.name: reader.number for reader in readers for stream in reader.streams}
    moving: list[Stream] = []
    bins: list[int] = []
    for reader in readers:  # lines 1 to 7
        if strategy.is_overloaded(reader, limits):
            picked = strategy.pick_streams_to_move(reader, limits)
            moving.extend(picked)
            for stream in picked:
                del places.streams[reader.number][stream.name]
            if not places.streams[reader.number]:
                bins.append(reader.number)  # emptied: packed anew
        elif strategy.accepts_new_stream(reader, limits):
            bins.append(reader.number)
    items = strategy.placement_order([*moving, *new])  # lines 8, 9
    _pack(places, items, bins)  # lines 10 to 13
    return _told(places)


def _pack(places: _Places, items: list[Stream], bins: list[int]) -> None:
    """Put each item into the bin with the least room that takes it, and open bins for the others, one at a time."""
    left = items
    while left:
        chosen = best_fit(map(places.strategy.counts, left), {number: places.room(number) for number in bins})
        for stream, number in zip(left, chosen, strict=False):
            places.put(stream, number)
        left = left[len(chosen) :]
        if left:
            number = _elsewhere(places, left[0], bins)
            places.put(left[0], number)
            if number not in bins:
                bins.append(number)
            left = left[1:]


def _elsewhere(places: _Places, stream: Stream, bins: list[int]) -> int:
    """Return the place of a stream that fits in no bin: an empty bin, a new one, its own, or that with the most room."""
    empty = next((number for number in bins if not places.streams[number]), None)
    number = empty if empty is not None else places.new()
    if number is not None:
        return number
    most = max(places.streams, key=lambda number: (places.room(number), -number))
    home = places.homes.get(stream.name, most)
    gained = places.room(most) - places.room(home)
    return most if gained > _WORTH_MOVING * places.limits.capacity else home


def _told(places: _Places) -> Assignment:
    now = {name: number for number, streams in places.streams.items() for name in streams}
    moves = [Move(name, places.homes.get(name), to) for name, to in now.items() if places.homes.get(name) != to]
    readers = {number: tuple(sorted(streams)) for number, streams in sorted(places.streams.items()) if streams}
    added = tuple(number for number in places.added if number in readers)
    return Assignment(readers, tuple(sorted(moves, key=lambda move: move.stream)), added)


def give_back(strategy: Strategy, readers: Sequence[Reader], limits: Limits, up_to: float) -> Assignment | None:
    """Return an assignment without the least loaded reader, if the others can take its streams; None if they cannot.

    The paper adds readers and says nothing of giving them back. Here the others must have room up to `up_to`, a share of
    the capacity, so that the streams do not come back in the next period.
    """
    if len(readers) < 2:
        return None
    least = min(readers, key=lambda reader: (strategy.load(reader.streams), -reader.number))
    places = _Places(strategy, limits, {r.number: _by_name(r.streams) for r in readers if r is not least})
    places.homes = {stream.name: reader.number for reader in readers for stream in reader.streams}
    items = strategy.placement_order(least.streams)
    room = {number: places.room(number) - (1 - up_to) * limits.capacity for number in places.streams}
    chosen = best_fit(map(strategy.counts, items), room)
    if len(chosen) < len(items):
        return None
    for stream, number in zip(items, chosen, strict=True):
        places.put(stream, number)
    return _told(places)


def _by_name(streams: Sequence[Stream]) -> dict[str, Stream]:
    return {stream.name: stream for stream in streams}
