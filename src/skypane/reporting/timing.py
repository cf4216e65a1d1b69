"""Times at which windows were answered, from the metrics of the batches (paper 1, section 6.2: latency).

    newest      ...--[start]-----------------[end]-----------------> event time, as the batches came
    wall clock        ^ opened                 ^ passed    ^ answered
                      |------------- latency --------------|
                                               |--- lag ---|

A window is opened by the first batch whose newest event time reaches its start, which has its first tuple or nearly so.
It is passed by the first batch whose newest event time reaches its end, and answered at the end of the first batch
whose punctuation reaches its end. The resolution of these times is one micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skypane.metrics import BatchMetrics
from skypane.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AnswerTimes:
    """Equal-length arrays, one entry per answered window, in order of `end`.

    end      (n,) int64, event time in microseconds
    latency  (n,) float64, seconds of wall clock from the window's first tuple to its answer
    lag      (n,) float64, seconds of wall clock from its end to its answer
    """

    end: IntArray
    latency: FloatArray
    lag: FloatArray


def answer_times(batches: Sequence[BatchMetrics], ends: IntArray, length: int) -> AnswerTimes:
    """Return when the windows with these `ends` (any order, microseconds; windows `length` long) were answered.

    Windows whose end no punctuation or no event has passed are left out: a drain has answered them.
    """
    timed = [metrics for metrics in batches if metrics.newest is not None and metrics.punctuation is not None]
    ends = np.unique(np.asarray(ends, np.int64))
    if not timed:
        return AnswerTimes(ends[:0], np.empty(0), np.empty(0))
    # Neither ever decreases, but a crash may have lost a line of the log.
    newest = np.maximum.accumulate([metrics.newest or 0 for metrics in timed])
    punctuation = np.maximum.accumulate([metrics.punctuation or 0 for metrics in timed])
    began = np.array([metrics.started_at for metrics in timed])
    ended = began + [metrics.seconds.get("total", 0.0) for metrics in timed]

    ends = ends[ends <= min(punctuation[-1], newest[-1])]
    opened = began[np.searchsorted(newest, ends - length)]
    passed = began[np.searchsorted(newest, ends)]
    answered = ended[np.searchsorted(punctuation, ends)]
    return AnswerTimes(ends, answered - opened, answered - passed)
