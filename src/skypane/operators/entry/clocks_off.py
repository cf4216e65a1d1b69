"""Event times of rows whose source has a clock that is off: corrected, or marked for quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.entry.pane_counts import newest_by
from skypane.progress.clock_offsets import ClockRules
from skypane.types import TICKS_PER_SECOND, BoolArray, IntArray, Micros

_SECOND = TICKS_PER_SECOND["us"]


class ClocksOff(NamedTuple):
    """The rows of sources whose clocks are off.

    offsets   (n,) int64, by how much the clock of each row's source is ahead, in microseconds; 0: not off
    sources   (n,) int64, the place of each row's source in `names`
    """

    offsets: IntArray
    sources: IntArray
    names: list[str]

    @classmethod
    def of(cls, source: pa.ChunkedArray, rules: ClockRules) -> ClocksOff | None:
        """Return the clocks of rows with these sources; None if none is off."""
        encoded = pc.dictionary_encode(source, null_encoding="encode").combine_chunks()
        names = [str(name) for name in encoded.dictionary.to_pylist()]
        by_name = np.array([rules.offsets.get(name, 0) for name in names], np.int64)
        if not by_name.any():
            return None
        sources = encoded.indices.to_numpy().astype(np.int64)
        return cls(by_name[sources], sources, names)

    def shown(self, times: IntArray, bad: BoolArray | None) -> Mapping[str, Micros]:
        """Return the newest of the uncorrected `times` (microseconds) by source, without rows that are `bad`."""
        where = self.offsets != 0 if bad is None else (self.offsets != 0) & ~bad
        return newest_by(self.sources[where], self.names, times[where])

    def corrected(self, rows: pa.Table, time: str) -> pa.Table:
        """Return the rows with their event times corrected; a time that would overflow stays at the bound of its type."""
        at = rows.schema.get_field_index(time)
        column = rows.column(at)
        ticks: IntArray = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        per_second = TICKS_PER_SECOND[column.type.unit]
        least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        by = np.clip(self.offsets // _SECOND, -(most // per_second), most // per_second) * per_second
        right = np.clip(ticks, least + np.maximum(by, 0), most + np.minimum(by, 0)) - by
        mask = pc.is_null(column).to_numpy() if column.null_count else None
        return rows.set_column(at, rows.schema.field(at), pa.array(right, mask=mask).cast(column.type))
