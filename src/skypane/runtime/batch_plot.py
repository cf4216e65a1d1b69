"""A plot of a query's batches, for notebooks; the report of `skypane run` has more of them (reporting/plots.py)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from skypane.metrics import BatchMetrics, drop_ratios


class BatchFigure(Figure):
    """A figure that cells show as it is, whatever the set-up of matplotlib's own display."""

    def _repr_svg_(self) -> str:
        text = StringIO()
        self.savefig(text, format="svg")
        return text.getvalue()


def batch_plot(batches: Sequence[BatchMetrics]) -> BatchFigure:
    """Plot, by the start of each batch: its rows and seconds, and the share of rows that were dropped as late so far."""
    when = [datetime.fromtimestamp(metrics.started_at, UTC) for metrics in batches]
    figure = BatchFigure(figsize=(8.0, 5.0), layout="constrained")
    rows, seconds, late = figure.subplots(3, 1, sharex=True)
    rows.plot(when, [metrics.rows for metrics in batches], ".-")
    rows.set(ylabel="rows", ylim=(0, None), title=f"batches {batches[0].batch_id} to {batches[-1].batch_id}")
    seconds.plot(when, [metrics.seconds.get("total", 0.0) for metrics in batches], ".-")
    seconds.set(ylabel="seconds", ylim=(0, None))
    for name, shares in drop_ratios(batches).items():
        late.plot(when, [100 * share for share in shares], ".-", label=f"dropped so far{f' by {name}' if name else ''}")
    if batches[-1].drop_budget is not None:
        late.axhline(100 * batches[-1].drop_budget, linestyle="--", color="tab:red", label="allowed")
    late.set(ylabel="late rows, %", ylim=(0, None))
    late.set_xlabel("start of the batch, UTC")
    late.legend(loc="upper left")
    late.xaxis.set_major_formatter(ConciseDateFormatter(AutoDateLocator(), tz=UTC))  # type: ignore[no-untyped-call]
    return figure
