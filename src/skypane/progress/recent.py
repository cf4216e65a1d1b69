"""How late rows have been of late: a histogram that forgets, with bounded memory, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skypane.types import CheckpointError, FloatArray, IntArray, Micros

_PER_OCTAVE = 8
_OCTAVES = 50


def _edges() -> IntArray:
    steps = np.exp2(np.arange(_OCTAVES * _PER_OCTAVE) / _PER_OCTAVE)
    return np.unique(np.concatenate([[0], np.rint(steps).astype(np.int64)]))


#: Lower edges of the bins, in microseconds: 0, then steps of 9 % up to 35 years; the last bin is open.
EDGES: IntArray = _edges()
EDGES.flags.writeable = False


@dataclass(frozen=True)
class RecentDistances:
    """Rows by distance, the weight of old rows halved whenever `half_life` more rows have come.

    A row's distance is how far its pane's end lay behind the newest time before its batch: with slack K, the row
    is dropped exactly if its distance is at least K. Rows whose pane still was ahead of that time are never dropped.
    """

    #: Weight of the rows in each bin of EDGES; trailing empty bins are left out.
    late: tuple[float, ...] = ()
    #: Weight of all rows.
    total: float = 0.0

    def add(self, distance: IntArray, rows: IntArray, half_life: float) -> Self:
        """Return the histogram with some panes' rows added after it has forgotten its share."""
        count = float(rows.sum())
        keep = 0.5 ** (count / half_life)
        is_late = distance >= 0
        at = np.searchsorted(EDGES, distance[is_late], side="right") - 1
        fresh = np.bincount(at, weights=rows[is_late].astype(np.float64))
        old = np.asarray(self.late, np.float64) * keep
        width = max(len(old), len(fresh))
        late = np.pad(old, (0, width - len(old))) + np.pad(fresh, (0, width - len(fresh)))
        return type(self)(tuple(late.tolist()), self.total * keep + count)

    def beyond(self) -> FloatArray:
        """Return, per bin, the weight of the rows that a slack equal to the bin's edge would have dropped."""
        return np.cumsum(np.asarray(self.late, np.float64)[::-1])[::-1]

    def slack_for(self, share: float) -> Micros:
        """Return the smallest edge K at which at most `share` of the rows would have been dropped."""
        fits = self.beyond() <= share * self.total
        return int(EDGES[np.argmax(fits) if fits.any() else len(fits)])

    def snapshot(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"late": list(self.late), "total": self.total}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the histogram whose snapshot() this is."""
        try:
            return cls(tuple(float(weight) for weight in snapshot["late"]), float(snapshot["total"]))
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"recent distances cannot be read from {snapshot!r}") from cause
