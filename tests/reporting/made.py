"""Batches made by hand, for tests of what is reported about them."""

from dataclasses import replace

from skypane.metrics import BatchMetrics
from skypane.policy import Decision

HOUR = 3_600_000_000

_BLANK = BatchMetrics(
    batch_id=0,
    rows=0,
    late_rows=0,
    quarantined={},
    late_by_source={},
    punctuation=None,
    newest=None,
    slack=None,
    seen_rows=0,
    dropped_rows=0,
    drop_budget=None,
    open_panes=0,
    open_rows=0,
    windows=0,
    window_rows=0,
    latest_window=None,
    exchange=False,
    splitting="PB_RR",
    plq_workers=2,
    wlq_workers=2,
    wlq_where="driver",
    decisions=(Decision("placement", "driver", "few rows"),),
    seconds={"total": 1.0, "plq": 0.6, "progress": 0.0, "wlq": 0.2, "sink": 0.1, "commit": 0.1},
    started_at=1_000_000.0,
)


def batch(**changed) -> BatchMetrics:
    return replace(_BLANK, **changed)


def totals(**places: int) -> dict[str, int]:
    """Return the account of rows that are at these places."""
    known = dict.fromkeys(("answered", "late", "quarantined", "held", "open"), 0) | places
    return {"read": sum(known.values()), **known}


def hourly(count: int, *, rows: int = 100, slack: int = 1) -> tuple[BatchMetrics, ...]:
    """Batches of an hour of event time each, a second of wall clock apart; punctuation `slack` hours behind."""
    return tuple(
        batch(
            batch_id=i,
            rows=rows,
            newest=(i + 1) * HOUR,
            punctuation=(i + 1 - slack) * HOUR,
            slack=slack * HOUR,
            seen_rows=(i + 1) * rows,
            dropped_rows=i,
            drop_budget=0.01,
            windows=1,
            window_rows=3,
            latest_window={"start": (i - slack) * HOUR, "end": (i + 1 - slack) * HOUR, "rows": 3},
            started_at=1_000_000.0 + i,
            seconds={"total": 0.5, "plq": 0.4, "wlq": 0.1},
        )
        for i in range(count)
    )
