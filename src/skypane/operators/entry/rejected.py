"""Rejected rows as one value: their numbers by reason, the counts that progress policies need, and the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from skypane.operators.entry.pane_counts import PaneCount, merged_counts
from skypane.operators.entry.reject_reasons import LATE, REASON
from skypane.snapshots import from_json, to_json


@dataclass(frozen=True, slots=True)
class Rejection:
    """Rows that did not enter, of one table, one task or one micro-batch.

    reasons    the number of rows by reason
    late       the counts of late rows by pane, oldest pane first: unlike other rejected rows, they have a valid time
    by_source  the number of late rows by source, if a source column is named
    rows       the rows with their reasons, in as many tables as there were, if they are kept
    elsewhere  the counts of rows of another query by pane, which are not rejected: progress policies see them, too
    """

    reasons: Mapping[str, int] = field(default_factory=dict)
    late: tuple[PaneCount, ...] = ()
    by_source: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[pa.Table, ...] = ()
    elsewhere: tuple[PaneCount, ...] = ()

    @classmethod
    def of(cls, rows: pa.Table, reason: str) -> Self:
        """Return the rejection of all of `rows` for one reason other than LATE."""
        column = pa.repeat(pa.scalar(reason), rows.num_rows)
        return cls({reason: rows.num_rows}, rows=(rows.append_column(REASON, column),))

    def merge(self, *others: Rejection) -> Rejection:
        """Return this rejection and `others` as one."""
        parts = (self, *others)
        return Rejection(
            reasons=_added(part.reasons for part in parts),
            late=tuple(merged_counts(count for part in parts for count in part.late)),
            by_source=_added(part.by_source for part in parts),
            rows=tuple(table for part in parts for table in part.rows),
            elsewhere=tuple(merged_counts(count for part in parts for count in part.elsewhere)),
        )

    @property
    def late_rows(self) -> int:
        return self.reasons.get(LATE, 0)

    @property
    def rows_elsewhere(self) -> int:
        """The number of rows of another query."""
        return sum(count.rows for count in self.elsewhere)

    @property
    def quarantined(self) -> dict[str, int]:
        """The number of rows rejected for each reason other than LATE."""
        return {reason: rows for reason, rows in self.reasons.items() if reason != LATE}

    def snapshot(self) -> dict[str, Any]:
        """Return everything but the rows as a JSON value."""
        value = {"reasons": dict(self.reasons), "late": to_json(self.late), "by_source": dict(self.by_source)}
        return value | ({"elsewhere": to_json(self.elsewhere)} if self.elsewhere else {})

    @classmethod
    def restored(cls, value: Mapping[str, Any]) -> Self:
        """Return the rejection of a snapshot(), which has counts but no rows."""
        late, elsewhere = (
            tuple(from_json(PaneCount, count) for count in value.get(name, ())) for name in ("late", "elsewhere")
        )
        return cls(value["reasons"], late, value["by_source"], elsewhere=elsewhere)


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)
