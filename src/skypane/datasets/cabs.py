"""GPS traces of San Francisco's cabs: the layout of the cabspotting files new_<cab>.txt, one for each cab, newest first.

    latitude longitude occupancy time

The cab's name stands in the file's. Rows are given oldest first; those of several files are brought into one order by
`Reading.by_time`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.layout import Checks, Field, LineLayout, fails, in_seconds, rows_at, unlikely


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
        Field("latitude", unit="degrees"),
        Field("longitude", unit="degrees"),
        Field("occupancy", "whole"),
        Field("epoch", "whole", "s"),
    ),
    _build,
    newest_first=True,
)
