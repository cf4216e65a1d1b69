"""The order of a merged log: by which field of a line, and how long its inputs are waited for."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.entry.reject_reasons import FUTURE
from skypane.runtime.line_rows import parse_each
from skypane.runtime.row_parser import FORMATS, RowFormat
from skypane.types import ConfigError, Duration, IntArray, Micros, micros

BY_TIME: Final = "by time"
"""The value of `order` with which the inputs are merged."""

UNITS: Final = MappingProxyType({"second": 1_000_000, "millisecond": 1_000, "microsecond": 1})
"""Units of times that are numbers, in microseconds."""

_SUPPORT: Final = 32
"""Lines after one that leaps ahead by which it is judged."""
_LEAP: Final = 60_000_000
"""Microseconds by which a line must be ahead of its input and of this machine's clock to be doubted."""
_YEARS: Final = (-62_135_596_800_000_000, 253_402_300_800_000_000)
"""The years 1 to 9999, half-open, in microseconds."""


class TimedLines(NamedTuple):
    """The lines of a block.

    lengths  the bytes of each line, its end included
    times    the time of each line, in microseconds; 0 for one without
    reasons  why a line has no place in the order, by its number in the block; "" for an empty line
    """

    lengths: IntArray
    times: IntArray
    reasons: dict[int, str]

    def first(self, count: int) -> TimedLines:
        """Return the first lines."""
        reasons = {at: reason for at, reason in self.reasons.items() if at < count}
        return TimedLines(self.lengths[:count], self.times[:count], reasons)

    def judged(self, newest: Micros, clock: Micros, *, waited: bool) -> TimedLines:
        """Reject lines that leap ahead, if most of the next _SUPPORT lines do not follow them; leave out what cannot be judged.

        One client whose clock is ahead would else make the lines of all others out of order. A leap is judged when as many
        lines have come, or by those that are there.

        newest  the newest time of the input before these lines
        waited  whether to judge by the lines that are there
        """
        if not np.any(self.times > clock + _LEAP):
            return self
        placed = np.setdiff1d(np.arange(len(self.times)), list(self.reasons))
        times, reasons = self.times[placed], dict(self.reasons)
        is_ahead = times > clock + _LEAP
        others = np.maximum.accumulate(np.where(is_ahead, newest, times))
        leaps = np.flatnonzero(is_ahead)
        for at, time, other in zip(leaps.tolist(), times[leaps].tolist(), others[leaps].tolist(), strict=True):
            if time - _LEAP > max(newest, other):
                after = times[at + 1 : at + 1 + _SUPPORT]
                if len(after) < _SUPPORT and not waited:
                    return self._replace(reasons=reasons).first(int(placed[at]))
                if 2 * np.count_nonzero(after < time - _LEAP) > len(after):
                    reasons[int(placed[at])] = FUTURE
                    continue
            newest = max(newest, time)
        return self._replace(reasons=reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOrder:
    """By which time lines are merged.

    time        the field with a line's event time: in JSON a text as ISO 8601 (UTC if it names no zone), or a number
    time_unit   one of UNITS if times are numbers; empty: they are texts
    format      "json" (an object a line) or "csv"
    columns     csv: the names of a line's columns, in order
    idle_after  how long a line waits for inputs that send nothing
    max_ahead   a time that is further ahead of this machine's clock is rejected: everything else would wait for it, or
                be late after it
    """

    time: str
    time_unit: str = ""
    format: str = "json"
    columns: tuple[str, ...] = ()
    idle_after: Duration = "1 minute"
    max_ahead: Duration = "1 hour"

    def __post_init__(self) -> None:
        time: object = self.time  # lists of inputs are files of users
        if not isinstance(time, str) or not time:
            raise ConfigError(f"order {BY_TIME!r} needs time, the field with the event time, got {self.time!r}")
        if self.format not in FORMATS:
            raise ConfigError(f"format must be json or csv, got {self.format!r}")
        if self.time_unit and self.time_unit not in UNITS:
            raise ConfigError(f"time_unit must be one of {', '.join(UNITS)}, got {self.time_unit!r}")
        self._check_columns()
        for name in ("idle_after", "max_ahead"):
            length = micros(getattr(self, name), name)
            if length <= 0:
                raise ConfigError(f"{name} must be longer than 0, got {getattr(self, name)!r}")
            object.__setattr__(self, name, length)

    def _check_columns(self) -> None:
        columns: object = self.columns
        if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
            raise ConfigError(f"columns must be a list of names, got {self.columns!r}")
        object.__setattr__(self, "columns", tuple(columns))
        if self.format == "json" and self.columns:
            raise ConfigError("columns is only for format csv; leave it out")
        if self.format == "csv" and self.columns.count(self.time) != 1:
            raise ConfigError(
                f"format csv needs columns, the names of a line's columns, one of them {self.time!r}, "
                f"got {list(self.columns)}"
            )

    @property
    def wait(self) -> float:
        """idle_after in seconds."""
        return micros(self.idle_after) / 1e6

    @property
    def layout(self) -> RowFormat:
        """How a line's time is parsed."""
        kind = pa.int64() if self.time_unit else pa.timestamp("us", "UTC")
        return RowFormat(self.format, pa.schema([(self.time, kind)]), self.columns)

    def read(self, block: bytes, clock: Micros) -> TimedLines:
        """Return the lines of a block with their times; `clock` is the time now, in microseconds since 1970."""
        lines = parse_each(self.layout, block)
        column = lines.rows.column(0)
        times: IntArray = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        each = UNITS.get(self.time_unit, 1)
        first, end = _YEARS
        absurd = (times < first // each) | (times >= end // each)
        times = np.where(absurd, 0, times) * each
        reasons: dict[int, str] = dict.fromkeys(
            np.flatnonzero(pc.is_null(column).to_numpy()).tolist(), f"null {self.time}"
        )
        reasons |= dict.fromkeys(np.flatnonzero(absurd).tolist(), f"absurd {self.time}")
        reasons |= dict.fromkeys(np.flatnonzero(times > clock + micros(self.max_ahead)).tolist(), FUTURE)
        reasons |= {at: f"malformed: {error}" if error else "" for at, error in lines.errors.items()}
        return TimedLines(lines.lengths, times, reasons)
