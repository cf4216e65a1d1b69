"""Estimates of the event times of rows that wait at inputs, from a few rows that the planner reads ahead of a batch.

Four places of each input are sampled: its next row, the row where an even share of the batch would end, the one where
the batch would end if it were read alone, and its last rows. The estimate of a place is the median of the times of a
few rows there, since rows may be out of order. A sample depends only on the input, so another driver makes the same
estimates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

import pyarrow as pa

from skypane.control.admission.alignment import TimesAhead, aligned_shares
from skypane.naming import instead
from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many.discovery import KINDS
from skypane.runtime.spark.sources.many.input_kind import Input, InputKind, OffsetRange, SampledInput
from skypane.types import ConfigError, Micros

ROWS = 16
"""Rows of a sample."""
MOST = 3_000
"""Samples from which on no further inputs are sampled for a batch, those with the fewest waiting rows."""
CORRECTIONS = 6
"""How often the shares of a batch are corrected by samples at their ends, at most."""

_log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """The rows that wait at an input: about `rows` in [start, last)."""

    input: Input
    start: int
    last: int
    rows: int

    def offset(self, row: int) -> int:
        """Return about where the row lies that has `row` waiting rows before it.

        The last rows are counted from the end, so that their place remains the same while others are read.
        """
        length, rows = self.last - self.start, max(self.rows, 1)
        if row and 0 < self.rows - row <= ROWS:
            return max(self.start, self.last - (self.rows - row) * (length // rows))
        return self.start + length * row // rows


def time_column(columns: pa.Schema, named: str | None) -> str | None:
    """Return the column of event time: the named one, or the only timestamp of the schema; None without one.

    Raises ConfigError if the named column is missing, or is not a timestamp, a date or a whole number.
    """
    if named is None:
        times = [one.name for one in columns if pa.types.is_timestamp(one.type)]
        return times[0] if len(times) == 1 else None
    if named not in columns.names:
        raise ConfigError(f"time_column: the schema has no column {named!r}; {instead(named, columns.names)}")
    kind = columns.field(named).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)):
        raise ConfigError(f"time_column {named!r} must be a timestamp, a date or a whole number, got {kind}")
    return named


class Sample(NamedTuple):
    """The median event time of rows, and how many rows after the first of them it is expected."""

    time: Micros
    middle: int

    @classmethod
    def of(cls, times: Sequence[Micros]) -> Sample:
        return cls(median_low(times), len(times) // 2)


class EventTimes:
    """Shares a batch by estimates of the event times of waiting rows; keeps the samples that the last batch needed."""

    def __init__(self, columns: pa.Schema, time: str) -> None:
        self.columns = columns
        self.time = time
        #: (name, offset) -> sample there, None if it shows no time
        self.known: dict[tuple[str, int], Sample | None] = {}
        #: the times ahead of each input, and its share, in the last batch, if it was sampled
        self.ahead: dict[str, TimesAhead] = {}
        self.read: dict[str, int] = {}
        #: whether the last batch could not take all rows
        self.more = False

    def shares(self, waiting: Mapping[str, Waiting], budget: int, turn: int) -> dict[str, int]:
        """Return the rows that a batch of `budget` rows reads of each input.

        The shares that follow from the first samples are sampled at their ends and corrected, until they end near a
        sample: the rate of an input may change within a batch.
        """
        wanted = {name: one.rows for name, one in waiting.items()}
        places = _places(waiting, budget)
        shares: dict[str, int] = {}
        for _ in range(1 + CORRECTIONS):
            at = {(name, waiting[name].offset(row)) for name, rows in places.items() for row in rows}
            self._sample(waiting, at - self.known.keys())
            ahead = {name: times for name in places if (times := self._ahead(waiting[name], places[name])) is not None}
            shares = aligned_shares(wanted, ahead, budget, turn)
            ends = {name: shares[name] for name in ahead if _far_from(shares[name], places[name], wanted[name])}
            if not ends:
                break
            places = {name: rows | {ends.get(name, 0)} for name, rows in places.items()}
        self.known = {place: one for place, one in self.known.items() if place in at and one is not None}
        self.ahead, self.read, self.more = ahead, shares, sum(wanted.values()) > budget
        return shares

    def all_read(self) -> None:
        """Record that a batch takes all waiting rows, as the one before it did."""
        self.known, self.ahead, self.read, self.more = {}, {}, {}, False

    def waiting_since(self) -> dict[str, Micros]:
        """Return the event time of the oldest next row of an input before the last batch, by column; {} if unknown."""
        if not self.ahead or self._per_second is None:
            return {}
        return {self.time: min(ahead.times[0] for ahead in self.ahead.values())}

    def seconds_left(self) -> dict[str, float]:
        """Return the seconds of event time that wait at each input after the last batch, where they are known."""
        per = self._per_second
        if per is None:
            return {}
        return {
            name: round((ahead.times[-1] - ahead.at(self.read[name])) / per, 3) for name, ahead in self.ahead.items()
        }

    @property
    def _per_second(self) -> int | None:
        kind = self.columns.field(self.time).type
        return 1_000_000 if pa.types.is_timestamp(kind) and kind.unit == "us" else None

    def _ahead(self, one: Waiting, rows: Iterable[int]) -> TimesAhead | None:
        """Return the times ahead of an input by the samples at `rows`; None if they show none."""
        samples = {row: sample for row in rows if (sample := self.known[one.input.name, one.offset(row)]) is not None}
        if not samples:
            return None
        found = TimesAhead.of({row + sample.middle: sample.time for row, sample in samples.items()})
        return found.extended(one.rows)

    def _sample(self, waiting: Mapping[str, Waiting], places: Iterable[tuple[str, int]]) -> None:
        """Read samples, one of each input at a time, since some kinds read many inputs at once."""
        left = sorted(places)
        while left:
            turn = dict(reversed(left))
            left = [(name, offset) for name, offset in left if turn[name] != offset]
            self.known |= dict.fromkeys(turn.items())
            ranges = {}
            for name, offset in turn.items():
                one = waiting[name]
                if isinstance(one.input, SampledInput):
                    start, end = one.input.sample(offset, ROWS, one.last)
                    if end > start:
                        ranges[name] = OffsetRange(one.input, start, end)
            for key in KINDS:
                parts = {name: part for name, part in ranges.items() if part.input.kind == key}
                for name, sample in self._read(key, parts).items():
                    self.known[name, turn[name]] = sample

    def _read(self, key: str, parts: Mapping[str, OffsetRange]) -> dict[str, Sample]:
        """Return the sample of each range; ranges that cannot be read now have none."""
        times: dict[str, list[Micros]] = {}
        try:
            for part, found in _peeked(KINDS[key], list(parts.values()), self.columns, self.time):
                if not isinstance(found, Malformed):
                    times.setdefault(part.input.name, []).extend(_whole(found.column(self.time)))
        except Exception as error:  # noqa: BLE001 - the batch itself reports what cannot be read
            _log.warning("Inputs (%s) are read without regard to event time for now: %s", key, error)
        return {name: Sample.of(values[:ROWS]) for name, values in times.items() if values}


def _places(waiting: Mapping[str, Waiting], budget: int) -> dict[str, set[int]]:
    """Return the rows of each input that are sampled first."""
    even = budget // max(len(waiting), 1)
    places: dict[str, set[int]] = {}
    for name, one in sorted(waiting.items(), key=lambda item: (-item[1].rows, item[0])):
        last = max(one.rows - ROWS, 0)
        places[name] = {0, min(even, last), min(budget, last), last}
        if sum(map(len, places.values())) >= MOST:
            break
    return places


def _far_from(row: int, places: Iterable[int], rows: int) -> bool:
    """Return whether no sample shows where a share ends, at `row`; the last rows are sampled together."""
    return row < rows - ROWS and all(abs(row - place) >= ROWS for place in places)


def _peeked(
    kind: InputKind, parts: Sequence[OffsetRange], columns: pa.Schema, time: str
) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield a few rows, with the column `time` at least; a kind may have a cheaper way than to read as a task does."""
    if not parts:
        return iter(())
    peek = getattr(kind, "peek", None)
    return kind.read(parts, columns) if peek is None else peek(parts, columns, time)


def _whole(column: pa.ChunkedArray) -> list[Micros]:
    """Return the times as whole numbers in the column's own unit, without nulls."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return [time for time in column.to_pylist() if time is not None]
