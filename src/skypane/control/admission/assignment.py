"""Paper 3's Algorithm 1: move streams from overloaded readers and pack them, with new ones, into readers with room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from skypane.control.admission.packing import best_fit
from skypane.control.admission.strategies import Reader, ReaderCapacity, Strategy, StreamLoad

_WORTH_MOVING = 0.1
"""Share of the capacity by which another reader must have more room for a stream to move to it, if no reader has enough
room for the stream."""


@dataclass(frozen=True, slots=True)
class StreamMove:
    """Move of a stream to a reader; `source` is None for a new stream."""

    stream: str
    source: int | None
    to: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Streams of each reader from now on, and the changes; moves include new streams.

    readers   number of a reader -> names of its streams, at least one
    added     new readers
    """

    readers: dict[int, tuple[str, ...]]
    moves: tuple[StreamMove, ...] = ()
    added: tuple[int, ...] = ()

    @property
    def redirected(self) -> tuple[StreamMove, ...]:
        """Moves of streams that another reader has read before."""
        return tuple(move for move in self.moves if move.source is not None)


@dataclass
class _Draft:
    """Assignment that is being changed: streams by reader, and the readers that had them before (`homes`)."""

    strategy: Strategy
    limits: ReaderCapacity
    streams: dict[int, dict[str, StreamLoad]]
    homes: dict[str, int] = field(default_factory=dict)
    added: list[int] = field(default_factory=list)

    def load(self, number: int) -> float:
        return self.strategy.load(self.streams[number].values())

    def room(self, number: int) -> float:
        return self.limits.capacity - self.load(number)

    def put(self, stream: StreamLoad, number: int) -> None:
        self.streams[number][stream.name] = stream

    def new(self) -> int | None:
        """Add a reader and return its number, or None if there may be no more."""
        if self.limits.max_readers is not None and len(self.streams) >= self.limits.max_readers:
            return None
        number = next(number for number in count(1) if number not in self.streams)
        self.streams[number] = {}
        self.added.append(number)
        return number


def place(
    strategy: Strategy, readers: Sequence[Reader], new: Sequence[StreamLoad], limits: ReaderCapacity
) -> Assignment:
    """Return the assignment for the next period (Algorithm 1, line by line).

    A stream that fits nowhere gets a new reader, or the reader with the most room if there may be no new one.
    """
    draft = _Draft(strategy, limits, {reader.number: _by_name(reader.streams) for reader in readers})
    draft.homes = {stream.name: reader.number for reader in readers for stream in reader.streams}
    moving: list[StreamLoad] = []
    bins: list[int] = []
    for reader in readers:  # lines 1 to 7
        if strategy.is_overloaded(reader, limits):
            picked = strategy.pick_streams_to_move(reader, limits)
            moving.extend(picked)
            for stream in picked:
                del draft.streams[reader.number][stream.name]
            if not draft.streams[reader.number]:
                bins.append(reader.number)  # empty, so streams may be packed into it
        elif strategy.accepts_new_stream(reader, limits):
            bins.append(reader.number)
    items = strategy.placement_order([*moving, *new])  # lines 8, 9
    _pack(draft, items, bins)  # lines 10 to 13
    return _assignment(draft)


def _pack(draft: _Draft, items: list[StreamLoad], bins: list[int]) -> None:
    """Put each item into the bin with the least room in which it fits, and open bins for the others, one at a time."""
    left = items
    while left:
        chosen = best_fit(map(draft.strategy.counts, left), {number: draft.room(number) for number in bins})
        for stream, number in zip(left, chosen, strict=False):
            draft.put(stream, number)
        left = left[len(chosen) :]
        if left:
            number = _elsewhere(draft, left[0], bins)
            draft.put(left[0], number)
            if number not in bins:
                bins.append(number)
            left = left[1:]


def _elsewhere(draft: _Draft, stream: StreamLoad, bins: list[int]) -> int:
    """Return the reader of a stream that fits in no bin: an empty or new one, its own, or that with the most room."""
    empty = next((number for number in bins if not draft.streams[number]), None)
    number = empty if empty is not None else draft.new()
    if number is not None:
        return number
    most = max(draft.streams, key=lambda number: (draft.room(number), -number))
    home = draft.homes.get(stream.name, most)
    gained = draft.room(most) - draft.room(home)
    return most if gained > _WORTH_MOVING * draft.limits.capacity else home


def _assignment(draft: _Draft) -> Assignment:
    now = {name: number for number, streams in draft.streams.items() for name in streams}
    moves = [StreamMove(name, draft.homes.get(name), to) for name, to in now.items() if draft.homes.get(name) != to]
    readers = {number: tuple(sorted(streams)) for number, streams in sorted(draft.streams.items()) if streams}
    added = tuple(number for number in draft.added if number in readers)
    return Assignment(readers, tuple(sorted(moves, key=lambda move: move.stream)), added)


def give_back(strategy: Strategy, readers: Sequence[Reader], limits: ReaderCapacity, up_to: float) -> Assignment | None:
    """Return an assignment without the least loaded reader, or None if the others cannot take its streams.

    The paper adds readers but does not describe removing them. Here the others must have room up to `up_to`, a share of
    the capacity, so that the streams do not move back in the next period.
    """
    if len(readers) < 2:
        return None
    least = min(readers, key=lambda reader: (strategy.load(reader.streams), -reader.number))
    draft = _Draft(strategy, limits, {r.number: _by_name(r.streams) for r in readers if r is not least})
    draft.homes = {stream.name: reader.number for reader in readers for stream in reader.streams}
    items = strategy.placement_order(least.streams)
    room = {number: draft.room(number) - (1 - up_to) * limits.capacity for number in draft.streams}
    chosen = best_fit(map(strategy.counts, items), room)
    if len(chosen) < len(items):
        return None
    for stream, number in zip(items, chosen, strict=True):
        draft.put(stream, number)
    return _assignment(draft)


def _by_name(streams: Sequence[StreamLoad]) -> dict[str, StreamLoad]:
    return {stream.name: stream for stream in streams}
