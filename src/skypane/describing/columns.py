"""The columns of a file that figures are about, as arrays in the order of arrival; times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from skypane.naming import shortened
from skypane.preference import Preference
from skypane.preference.schema import field_of
from skypane.types import TICKS_PER_SECOND, BadInputError, ConfigError, FloatArray, IntArray

#: what a whole number counts, where it is a time
Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
UNITS: tuple[Unit, ...] = get_args(Unit)

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}


@dataclass(frozen=True)
class Roles:
    """Which column is what. `time` is the event time; rows without `arrival` are taken in the order of the file.

    unit: what times count that are whole numbers; None: microseconds, with a warning where the years are doubtful.
    """

    time: str
    arrival: str | None = None
    source: str | None = None
    key: str | None = None
    criteria: Preference | None = None
    unit: Unit | None = None

    @property
    def columns(self) -> list[str]:
        """Return all columns named, each once."""
        ranked = () if self.criteria is None else self.criteria.columns
        named = (self.time, self.arrival, self.source, self.key, *ranked)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, eq=False)
class RecordedStream:
    """n rows in the order of arrival.

    event, arrival: (n,) microseconds; arrival is None if the file does not tell. source, key: (n,) codes from 0. points:
    (n, d), smaller is better; of rows whose criteria are complete only, so n may be smaller there.
    """

    event: IntArray
    arrival: IntArray | None = None
    source: IntArray | None = None
    key: IntArray | None = None
    points: FloatArray | None = None
    #: rows left out of `points`, because a criterion of theirs is null or NaN
    incomparable: int = 0
    #: whether event times are whole numbers whose unit no one has named
    unit_assumed: bool = False

    @property
    def clock(self) -> IntArray:
        """Arrival times if they are known, else event times in ascending order (microseconds)."""
        return np.sort(self.event) if self.arrival is None else self.arrival

    @property
    def delay(self) -> IntArray:
        """Return how far each row comes behind (microseconds).

        With arrival times: arrival minus event time. Without: how far its event time lies behind the newest one seen
        before it, zero if not at all.
        """
        if self.arrival is not None:
            return self.arrival - self.event
        if not len(self.event):
            return self.event
        newest = np.maximum.accumulate(self.event)
        return newest - self.event


def load(path: Path, roles: Roles) -> RecordedStream:
    """Return what the roles' columns of the file hold; a folder is read as one of parquet files.

    Raises ConfigError if it cannot be read, or if a column is missing or of no use in its role; BadInputError if a time
    is null.
    """
    return stream_of(_table(path, roles), roles)


def stream_of(table: pa.Table, roles: Roles) -> RecordedStream:
    """Return what the roles' columns of a table hold, rows that arrive at the same time in the table's order."""
    for name in roles.columns:
        field_of(table.schema, name)
    event = _micros(table, roles.time, roles.unit)
    arrival = None if roles.arrival is None else _micros(table, roles.arrival, roles.unit)
    if arrival is not None and np.any(arrival[1:] < arrival[:-1]):
        order = np.argsort(arrival, kind="stable")
        table, event, arrival = table.take(pa.array(order)), event[order], arrival[order]
    points, incomparable = _points(table, roles.criteria)
    assumed = roles.unit is None and pa.types.is_integer(table.schema.field(roles.time).type)
    source, key = _codes(table, roles.source), _codes(table, roles.key)
    return RecordedStream(event, arrival, source, key, points, incomparable, assumed)


def _table(path: Path, roles: Roles) -> pa.Table:
    try:
        kind = "parquet" if path.is_dir() else _FORMATS.get(path.suffix)
        if kind is None:
            raise ConfigError(
                f"cannot tell from {path.suffix!r} how {path} is to be read; need .parquet, .csv or .arrow"
            )
        file = ds.dataset(path, format=kind)
        for name in roles.columns:
            field_of(file.schema, name)
        return file.to_table(columns=roles.columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigError(f"cannot read {shortened(str(path))}: {shortened(str(error).splitlines()[0])}") from error


def _micros(table: pa.Table, name: str, unit: Unit | None) -> IntArray:
    column = table.column(name)
    kind = column.type
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    if pa.types.is_timestamp(kind):
        unit = kind.unit
    elif not pa.types.is_integer(kind):
        raise ConfigError(f"column {name!r} is {kind}, need a timestamp, a date, or whole numbers")
    if column.null_count:
        raise BadInputError(f"column {name!r} has {column.null_count} nulls, need a time in each row")
    try:
        ticks: IntArray = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise ConfigError(f"column {name!r} holds a number that is no time: {error}") from error
    return _in_micros(ticks, unit or "us", name)


def _in_micros(ticks: IntArray, unit: Unit, name: str) -> IntArray:
    """Return ticks of a unit as microseconds; of finer ones the rest is cut off. ConfigError where that overflows."""
    per_second, micro = TICKS_PER_SECOND[unit], TICKS_PER_SECOND["us"]
    if per_second > micro:
        return ticks // (per_second // micro)
    scale = micro // per_second
    longest = np.iinfo(np.int64).max // scale
    if len(ticks) and not -longest <= ticks.min() <= ticks.max() <= longest:
        raise ConfigError(f"column {name!r} holds {ticks.max()}, which is no time in {unit}; give another unit")
    return ticks * scale


def _codes(table: pa.Table, name: str | None) -> IntArray | None:
    """Return a number for each distinct value; null is one."""
    if name is None:
        return None
    encoded = pc.dictionary_encode(table.column(name), null_encoding="encode").combine_chunks()
    codes: IntArray = encoded.indices.cast(pa.int64()).to_numpy()
    return codes


def _points(table: pa.Table, criteria: Preference | None) -> tuple[FloatArray | None, int]:
    if criteria is None:
        return None, 0
    criteria.validate(table.schema)
    whole = np.ones(table.num_rows, np.bool_)
    for name in criteria.columns:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # in a dictionary NaN is a value like any other
        whole &= ~column.is_null(nan_is_null=True).to_numpy()
    return criteria.orient(table.filter(pa.array(whole))), int((~whole).sum())
