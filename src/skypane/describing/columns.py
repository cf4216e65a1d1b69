"""The columns of a recorded stream as arrays, in the order of arrival, with times in microseconds."""

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
from skypane.preference.column_checks import field_of
from skypane.types import TICKS_PER_SECOND, BadInputError, ConfigError, FloatArray, IntArray

#: the unit of times that are whole numbers
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
class ColumnRoles:
    """The roles of columns: `time` is the event time; without `arrival`, rows arrive in the order of the file.

    unit: the unit of times that are whole numbers; None: microseconds, with a warning if the years are doubtful.
    """

    time: str
    arrival: str | None = None
    source: str | None = None
    key: str | None = None
    criteria: Preference | None = None
    unit: Unit | None = None

    @property
    def columns(self) -> list[str]:
        """All columns with a role, without repetition."""
        ranked = () if self.criteria is None else self.criteria.columns
        named = (self.time, self.arrival, self.source, self.key, *ranked)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, eq=False)
class RecordedStream:
    """n rows in the order of arrival.

    event, arrival   (n,) microseconds; arrival is None if the file has no arrival times
    source, key      (n,) codes from 0
    points           (m, d), smaller is better, of the m <= n rows whose criteria are complete
    """

    event: IntArray
    arrival: IntArray | None = None
    source: IntArray | None = None
    key: IntArray | None = None
    points: FloatArray | None = None
    #: rows that are not in `points` because a criterion is null or NaN
    incomparable: int = 0
    #: names of the sources by their codes, as a job names them: a row without a source is of "None"
    source_names: tuple[str, ...] = ()
    #: whether event times are whole numbers and no unit was given
    unit_assumed: bool = False

    @property
    def clock(self) -> IntArray:
        """The arrival times if they are known, else the event times in ascending order (microseconds)."""
        return np.sort(self.event) if self.arrival is None else self.arrival

    @property
    def delay(self) -> IntArray:
        """The delay of each row (microseconds).

        With arrival times, it is arrival minus event time; without, the distance of the event time behind the newest
        one of the rows before, or zero.
        """
        if self.arrival is not None:
            return self.arrival - self.event
        if not len(self.event):
            return self.event
        newest = np.maximum.accumulate(self.event)
        return newest - self.event


def load(path: Path, roles: ColumnRoles) -> RecordedStream:
    """Return the stream in a file; a folder is read as a folder of parquet files.

    Raises ConfigError if it cannot be read, or if a column is missing or has a type that does not suit its role;
    BadInputError if a time is null.
    """
    return stream_of(_table(path, roles), roles)


def stream_of(table: pa.Table, roles: ColumnRoles) -> RecordedStream:
    """Return the stream in a table; rows that arrive at the same time keep the order of the table."""
    for name in roles.columns:
        field_of(table.schema, name)
    event = _micros(table, roles.time, roles.unit)
    arrival = None if roles.arrival is None else _micros(table, roles.arrival, roles.unit)
    if arrival is not None and np.any(arrival[1:] < arrival[:-1]):
        order = np.argsort(arrival, kind="stable")
        table, event, arrival = table.take(pa.array(order)), event[order], arrival[order]
    points, incomparable = _points(table, roles.criteria)
    assumed = roles.unit is None and pa.types.is_integer(table.schema.field(roles.time).type)
    (source, names), (key, _) = _codes(table, roles.source), _codes(table, roles.key)
    return RecordedStream(event, arrival, source, key, points, incomparable, names, assumed)


def _table(path: Path, roles: ColumnRoles) -> pa.Table:
    try:
        kind = "parquet" if path.is_dir() else _FORMATS.get(path.suffix)
        if kind is None:
            raise ConfigError(
                f"cannot read {path}: unknown file name extension {path.suffix!r}; need .parquet, .csv or .arrow"
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
        raise ConfigError(f"column {name!r} is of type {kind}, need a timestamp, a date, or whole numbers")
    if column.null_count:
        raise BadInputError(f"column {name!r} has {column.null_count} nulls, need a time in each row")
    try:
        ticks: IntArray = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise ConfigError(f"column {name!r} holds a number that is not a time: {error}") from error
    return _in_micros(ticks, unit or "us", name)


def _in_micros(ticks: IntArray, unit: Unit, name: str) -> IntArray:
    """Return ticks of a unit as microseconds, rounded down; raise ConfigError if they overflow."""
    per_second, micro = TICKS_PER_SECOND[unit], TICKS_PER_SECOND["us"]
    if per_second > micro:
        return ticks // (per_second // micro)
    scale = micro // per_second
    longest = np.iinfo(np.int64).max // scale
    if len(ticks) and not -longest <= ticks.min() <= ticks.max() <= longest:
        raise ConfigError(f"column {name!r} holds {ticks.max()}, which is not a time in {unit}; give another unit")
    return ticks * scale


def _codes(table: pa.Table, name: str | None) -> tuple[IntArray | None, tuple[str, ...]]:
    """Return a code for each distinct value, and the values as texts; null is a value."""
    if name is None:
        return None, ()
    encoded = pc.dictionary_encode(table.column(name), null_encoding="encode").combine_chunks()
    codes: IntArray = encoded.indices.cast(pa.int64()).to_numpy()
    return codes, tuple(map(str, encoded.dictionary.to_pylist()))


def _points(table: pa.Table, criteria: Preference | None) -> tuple[FloatArray | None, int]:
    if criteria is None:
        return None, 0
    criteria.validate(table.schema)
    whole = np.ones(table.num_rows, np.bool_)
    for name in criteria.columns:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # is_null() does not find NaN in a dictionary
        whole &= ~column.is_null(nan_is_null=True).to_numpy()
    return criteria.orient(table.filter(pa.array(whole))), int((~whole).sum())
