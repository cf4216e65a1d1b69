"""Stations of the SensorScope project: the layout of the files sensorscope-monitor-<station>.txt (LUCE and others).

    station year month day hour minute second epoch sequence, then ten readings of the station's own health

The real data set (d = 4) of paper 4, section 6.5, comes from this project. The calendar fields are the station's local
time and redundant with `epoch`, UTC: they must be numbers and are left out of the rows. NaN is a missing reading.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from skypane.datasets.text_layout import Checks, LineField, LineLayout, in_seconds, rows_at, unlikely

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
        LineField("station", "whole"),
        *(LineField(name, "whole") for name in _CALENDAR),
        LineField("epoch", "whole", "s"),
        LineField("sequence"),
        LineField("config_sampling", unit="s"),
        LineField("data_sampling", unit="s"),
        LineField("radio_duty", unit="%"),
        LineField("radio_power", unit="dBm"),
        LineField("radio_frequency", unit="MHz"),
        LineField("primary_voltage", unit="V"),
        LineField("secondary_voltage", unit="V"),
        LineField("solar_current", unit="mA"),
        LineField("global_current", unit="mA"),
        LineField("energy_source"),
    ),
    _build,
)
