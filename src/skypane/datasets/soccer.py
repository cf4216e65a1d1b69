"""Positions of the players and the ball of a soccer match: the layout of the DEBS 2013 challenge, "full-game".

    sid,ts,x,y,z,|v|,|a|,vx,vy,vz,ax,ay,az

Papers 1 and 5 use recordings of this real-time locating system (RTLS). Sensors in shoes and gloves sample at 200 Hz,
the ball's at 2000 Hz; the file is in the order of arrival. Its clock starts with the system, not in 1970: the match
begins at 10753295594424116 ps and ends at 14879639146403495 ps.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.text_layout import Checks, LineField, LineLayout, fails, rows_at

PICOS_PER_MICRO = 1_000_000


def _build(fields: pa.Table, path: Path) -> tuple[pa.Table, Checks]:
    del path
    time = pc.divide(fields["ts"], PICOS_PER_MICRO)
    checks = [("ts is below zero", fails(pc.greater_equal(fields["ts"], 0)))]
    return rows_at(time, fields["sid"], fields.drop_columns(["sid", "ts"])), checks


SOCCER = LineLayout(
    "DEBS 2013 soccer",
    (
        LineField("sid", "whole"),
        LineField("ts", "whole", "ps"),
        *(LineField(name, "whole", "mm") for name in ("x", "y", "z")),
        LineField("speed", "whole", "um/s"),
        LineField("acceleration", "whole", "um/s^2"),
        *(LineField(name, "whole", "1/10000 of the speed") for name in ("vx", "vy", "vz")),
        *(LineField(name, "whole", "1/10000 of the acceleration") for name in ("ax", "ay", "az")),
    ),
    _build,
    separator=",",
)
