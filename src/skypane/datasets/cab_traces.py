"""GPS traces of San Francisco's cabs: the layout of the cabspotting files new_<cab>.txt, one per cab, newest first.

    latitude longitude occupancy time

The name of the file contains the name of the cab. Rows are returned oldest first; `ParsedRows.by_time` sorts the rows
of several files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.text_layout import Checks, LineField, LineLayout, fails, in_seconds, rows_at, unlikely


def _build(fields: pa.Table, path: Path) -> tuple[pa.Table, Checks]:
    cab = pa.chunked_array([pa.array(np.full(fields.num_rows, path.stem.removeprefix("new_")), pa.string())])
    checks = [
        ("latitude is not within -90 and 90", fails(pc.less_equal(pc.abs(fields["latitude"]), 90))),
        ("longitude is not within -180 and 180", fails(pc.less_equal(pc.abs(fields["longitude"]), 180))),
        ("occupancy is not 0 or 1", fails(pc.is_in(fields["occupancy"], pa.array([0, 1])))),
        unlikely("epoch", fields["epoch"]),
    ]
    return rows_at(in_seconds(fields["epoch"]), cab, fields.drop_columns(["epoch"])), checks


CABS = LineLayout(
    "San Francisco cabs",
    (
        LineField("latitude", unit="degrees"),
        LineField("longitude", unit="degrees"),
        LineField("occupancy", "whole"),
        LineField("epoch", "whole", "s"),
    ),
    _build,
    newest_first=True,
)
