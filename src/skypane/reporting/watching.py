"""Show a query that another process runs, by the batches that its checkpoint has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from skypane.metrics import BatchMetrics
from skypane.reporting.live import Display
from skypane.reporting.query_view import QueryView

EVERY: Final = 1.0
"""Seconds between two looks at the checkpoint."""


def view_from(title: str, batches: Sequence[BatchMetrics]) -> QueryView:
    """Return the view of a query after these batches, the first of which may have others before it."""
    if not batches:
        return QueryView(title)
    first = batches[0]
    title = f"{title}, from batch {first.batch_id} on" if first.batch_id else title
    read = first.totals.get("read", first.seen_rows)  # earlier versions kept no totals
    view = QueryView(title, read_before=max(0, read - first.rows))
    for metrics in batches:
        view = view.after(metrics)
    return view


def watch(
    display: Display,
    known: Sequence[BatchMetrics],
    committed: Callable[[], Sequence[BatchMetrics]],
    ended: Callable[[], bool],
    front: Callable[[BatchMetrics], pa.Table | None],
) -> None:
    """Show the batches that are `known`, and those that `committed` returns, new ones each time, until `ended` is True."""
    with display:
        while True:
            last = ended()  # before the batches are read, so that none is missed
            for metrics in (*known, *committed()):
                display.batch(metrics, lambda m=metrics: front(m))  # type: ignore[misc]
            if last:
                return
            known = ()
            time.sleep(EVERY)
