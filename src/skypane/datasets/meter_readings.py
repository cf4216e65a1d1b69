"""Half-hourly energy readings of single meters: the layout of the Irish smart metering trial, File<n>.txt.

    meter code kWh

A code is DDDHH: day 1 is 1 January 2009; half hour 1 is 00:00 to 00:30; half hours 49 and 50 exist on the day on which
the clocks go back. Event time is the beginning of the half hour in UTC, counted in half hours from the day's local
midnight.
"""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.text_layout import Checks, LineField, LineLayout, rows_at
from skypane.types import Micros

_DAY: Micros = 86_400_000_000
_HALF_HOUR: Micros = 1_800_000_000
_PER_DAY = 100
_LONGEST_DAY = 50
_LAST_CODE = 99_999
_FIRST_DAY = date(2009, 1, 1)


def meters(zone: str = "Europe/Dublin", first_day: date = _FIRST_DAY) -> LineLayout:
    """Return the layout for meters in a time zone, an IANA name, with `first_day` as day 1."""
    fields = (LineField("meter", "whole"), LineField("code", "whole"), LineField("kwh", unit="kWh"))
    return LineLayout("energy meters", fields, partial(_build, zone=zone, first_day=first_day))


def _build(fields: pa.Table, path: Path, zone: str, first_day: date) -> tuple[pa.Table, Checks]:
    del path
    code = fields["code"].fill_null(0).to_numpy()
    day, half = np.divmod(code, _PER_DAY)
    good = (day >= 1) & (half >= 1) & (half <= _LONGEST_DAY) & (code <= _LAST_CODE)
    # Rows that fail the checks get a valid dummy time; they are removed later.
    wall = np.where(good, (day - 1 + (first_day - date(1970, 1, 1)).days) * _DAY, 0)
    midnight = pc.assume_timezone(pa.array(wall).cast(pa.timestamp("us")), zone).cast(pa.int64()).to_numpy()
    time = pa.chunked_array([pa.array(midnight + np.where(good, half - 1, 0) * _HALF_HOUR)])
    checks = [
        ("code is not DDDHH with half hours 01 to 50", ~good),
        ("kwh is missing", fields["kwh"].is_null().to_numpy()),
    ]
    return rows_at(time, fields["meter"], fields.select(["kwh"])), checks
