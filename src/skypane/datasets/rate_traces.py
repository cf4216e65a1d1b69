"""Arrival-rate traces: the number of tuples that arrived in each second.

    second count

This is the layout of the traces that paper 5 publishes, and of many others. The seconds of a trace count from its own
start, which is mapped to 1970. The source is the name of the file. counts() returns the series for the estimators.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.text_layout import TIME, Checks, LineField, LineLayout, fails, in_seconds, rows_at, unlikely
from skypane.types import BadInputError, IntArray

_SECOND = 1_000_000
#: ten years in seconds: a longer trace is taken for a wrong number
_LONGEST = 10 * 366 * 86_400


def _build(fields: pa.Table, path: Path) -> tuple[pa.Table, Checks]:
    count = fields["count"].fill_null(0.0)
    # Some traces write 9436 as 9436.0.
    whole = pc.and_(pc.equal(count, pc.floor(count)), pc.less(count, 2**53))
    checks = [
        unlikely("second", fields["second"]),
        ("count is missing", fields["count"].is_null().to_numpy()),
        ("count is not whole", fails(whole)),
        ("count is below zero", fails(pc.greater_equal(count, 0))),
    ]
    counts = pc.if_else(whole, count, 0.0).cast(pa.int64())
    trace = pa.chunked_array([pa.array(np.full(fields.num_rows, path.stem), pa.string())])
    return rows_at(in_seconds(fields["second"]), trace, pa.table({"count": counts})), checks


RATES = LineLayout("arrival rates", (LineField("second", "whole", "s"), LineField("count")), _build)


def counts(trace: pa.Table) -> IntArray:
    """Return the tuples per second from the first second of a trace to its last; missing seconds are zero.

    `trace` has the rows of one file of the layout RATES. The counts of repeated seconds are added up.
    """
    second = trace.column(TIME).cast(pa.int64()).to_numpy() // _SECOND
    if not len(second):
        return np.zeros(0, np.int64)
    length = int(second.max() - second.min()) + 1
    if length > _LONGEST:
        raise BadInputError(f"a trace from second {second.min()} to {second.max()} is longer than ten years")
    series = np.zeros(length, np.int64)
    np.add.at(series, second - second.min(), trace.column("count").to_numpy())
    return series
