"""Stations of the SensorScope project: the layout of the files sensorscope-monitor-<station>.txt (LUCE and others).

    station year month day hour minute second epoch sequence, then ten readings of the station's own health

Paper 4, section 6.5, takes its real data set (d = 4) from here. The calendar fields are the station's local time and
say nothing that `epoch`, UTC, does not: they must be numbers and are left out of the rows. NaN is a missing reading.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from skypane.datasets.layout import Checks, Field, LineLayout, in_seconds, rows_at, unlikely

_CALENDAR = ("year", "month", "day", "hour", "minute", "second")
#: the four criteria of paper 4
CRITERIA = ("solar_current", "global_current", "primary_voltage", "secondary_voltage")


def _build(fields: pa.Table, path: Path) -> tuple[pa.Table, Checks]:
    del path
    checks = [unlikely("epoch", fields["epoch"])]
    readings = fields.drop_columns(["station", "epoch", *_CALENDAR])
    return rows_at(in_seconds(fields["epoch"]), fields["station"], readings), checks


SENSORSCOPE = LineLayout(
    "SensorScope monitor",
    (
        Field("station", "whole"),
        *(Field(name, "whole") for name in _CALENDAR),
        Field("epoch", "whole", "s"),
        Field("sequence"),
        Field("config_sampling", unit="s"),
        Field("data_sampling", unit="s"),
        Field("radio_duty", unit="%"),
        Field("radio_power", unit="dBm"),
        Field("radio_frequency", unit="MHz"),
        Field("primary_voltage", unit="V"),
        Field("secondary_voltage", unit="V"),
        Field("solar_current", unit="mA"),
        Field("global_current", unit="mA"),
        Field("energy_source"),
    ),
    _build,
)
