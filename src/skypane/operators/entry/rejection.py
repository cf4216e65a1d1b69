"""What was rejected, as one value: how many rows for which reason, what progress must know of them, the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import pyarrow as pa

from skypane.operators.entry.counts import PaneCount, merged_counts
from skypane.operators.entry.reasons import LATE, REASON


@dataclass(frozen=True, slots=True)
class Rejection:
    """Rows that did not enter; of one table, one task or one batch.

    reasons    how many rows there are of each reason
    late       the panes of those that are late, oldest first: unlike the others they have a credible time
    by_source  how many late rows each source sent, where the gate knows of sources
    rows       the rows with their reason, in as many tables as there were, where they are kept
    """

    reasons: Mapping[str, int] = field(default_factory=dict)
    late: tuple[PaneCount, ...] = ()
    by_source: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[pa.Table, ...] = ()

    @classmethod
    def of(cls, rows: pa.Table, reason: str) -> Self:
        """Return the rejection of all of `rows` for one reason other than LATE."""
        column = pa.repeat(pa.scalar(reason), rows.num_rows)
        return cls({reason: rows.num_rows}, rows=(rows.append_column(REASON, column),))

    def merge(self, *others: Rejection) -> Rejection:
        """Return all of them as one."""
        parts = (self, *others)
        return Rejection(
            reasons=_added(part.reasons for part in parts),
            late=tuple(merged_counts(count for part in parts for count in part.late)),
            by_source=_added(part.by_source for part in parts),
            rows=tuple(table for part in parts for table in part.rows),
        )

    @property
    def late_rows(self) -> int:
        return self.reasons.get(LATE, 0)

    @property
    def quarantined(self) -> dict[str, int]:
        """How many rows were rejected for each reason other than LATE."""
        return {reason: rows for reason, rows in self.reasons.items() if reason != LATE}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value of all but the rows."""
        late = [asdict(count) for count in self.late]
        return {"reasons": dict(self.reasons), "late": late, "by_source": dict(self.by_source)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(value["reasons"], tuple(PaneCount(**count) for count in value["late"]), value["by_source"])


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)
