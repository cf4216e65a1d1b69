"""Key figures of one run, for the report and for the last lines on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from skypane.control.latency import Latencies
from skypane.metrics import BatchMetrics
from skypane.reporting.snapshot import Snapshot
from skypane.reporting.timing import AnswerTimes, answer_times


@dataclass(frozen=True, eq=False)
class Summary:
    """Totals over all batches of a run; seconds are wall clock."""

    batches: int
    rows: int
    seconds: float
    windows: int
    window_rows: int
    #: quarantined rows of these batches by reason
    quarantined: dict[str, int]
    #: the last batch, which has the numbers of rows since the first start
    last: BatchMetrics
    #: median and 95th percentile of a batch's time
    batch_seconds: tuple[float, float]
    times: AnswerTimes
    latencies: Latencies

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0


def summarise(snapshot: Snapshot) -> Summary:
    """Return the summary of `snapshot`, which must have at least one batch."""
    batches = snapshot.batches
    quarantined: Counter[str] = Counter()
    for metrics in batches:
        quarantined.update(metrics.quarantined)
    totals = [metrics.seconds.get("total", 0.0) for metrics in batches]
    return Summary(
        batches=len(batches),
        rows=sum(metrics.rows for metrics in batches),
        seconds=running_seconds(batches),
        windows=sum(metrics.windows for metrics in batches),
        window_rows=sum(metrics.window_rows for metrics in batches),
        quarantined=dict(quarantined),
        last=batches[-1],
        batch_seconds=(float(np.median(totals)), float(np.quantile(totals, 0.95))),
        times=_times(snapshot),
        latencies=reduce(Latencies.merge, map(_latencies, batches), Latencies()),
    )


def _latencies(metrics: BatchMetrics) -> Latencies:
    return Latencies() if metrics.latency is None else Latencies.of(metrics.latency, metrics.answers)


def _times(snapshot: Snapshot) -> AnswerTimes:
    if snapshot.sizes is not None:
        ends = snapshot.sizes.end
    else:
        latest = [metrics.latest_window for metrics in snapshot.batches]
        ends = np.array([window["end"] for window in latest if window is not None], np.int64)
    return answer_times(snapshot.batches, ends, snapshot.window)


#: seconds between two batches from which the stream counts as stopped and resumed later
_PAUSE = 60.0


def running_seconds(batches: Sequence[BatchMetrics]) -> float:
    """Return the wall-clock seconds from the first batch's start to the last one's end, without pauses."""
    starts = np.array([metrics.started_at for metrics in batches])
    ends = starts + [metrics.seconds.get("total", 0.0) for metrics in batches]
    gaps = np.maximum(starts[1:] - ends[:-1], 0.0)
    return float(ends[-1] - starts[0] - gaps[gaps > _PAUSE].sum())
