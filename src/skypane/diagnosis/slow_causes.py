"""Why batches take long: the step that takes most of them, and whether one task of it has most of the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from skypane.diagnosis.evidence import Evidence, since
from skypane.metrics import BatchMetrics
from skypane.wording import percent, seconds

BATCHES: Final = 5
"""Batches in succession that have to be slow: the first ones of a start are, and those that catch up."""
SLOWER: Final = 1.5
"""By how much they have to be longer than their trigger, at the median."""
LONG: Final = 1.0
"""Seconds from which a sink or a commit is slow without a trigger, if it also takes half of the batch."""
STEPS: Final = {
    "sink": ("slow sink", "in the sink", "a faster sink, or fewer and larger files: Directory(roll=...); the query waits for it"),
    "commit": ("slow checkpoint", "to commit to the checkpoint", "a faster disk or store for checkpoint=, or a longer trigger"),
    "plq": (
        "slow panes",
        "to lift the rows into panes",
        "more workers: elastic=sp.Fuzzy() or WorkerOptions(plq_workers=), with cores for them; or fewer rows in a batch",
    ),
    "wlq": (
        "slow windows",
        "to answer the windows",
        "a longer slide, or more workers: elastic=sp.Fuzzy() or WorkerOptions(wlq_workers=)",
    ),
    "rest": ("slow source", "in Spark and its source", "a longer trigger, or a source that is faster to list and to read"),
}  # fmt: skip
"""By step: the cause, where the time goes, and what to set."""


def slow_batches(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield why the last batches have taken longer than their trigger, or a second in a sink or a commit."""
    read = [batch for batch in batches if batch.rows]
    last = read[-BATCHES:]
    if len(last) < BATCHES or not batches[-1].rows or _catches_up(last):
        return
    trigger, total = last[-1].trigger, median(_total(batch) for batch in last)
    parts = {step: median(_parts(batch)[step] for batch in last) for step in STEPS}
    step = max(parts, key=lambda one: parts[one])
    if trigger and all(_total(batch) > trigger for batch in last) and total >= SLOWER * trigger:
        too_long, name = [_total(batch) > trigger for batch in batches], step
        of = f", where the trigger leaves {seconds(trigger)}"
    elif step in {"sink", "commit"} and all(_parts(batch)[step] >= max(LONG, _total(batch) / 2) for batch in last):
        too_long, name = [_parts(batch)[step] >= max(LONG, _total(batch) / 2) for batch in batches], step
        of = ""
    else:
        return
    begin = since(too_long)
    cause, where, remedy = STEPS[name]
    why = f"a batch takes {seconds(total)}{of}, {percent(parts[step] / total)} of it {where}"
    if (skew := _skew(last, step)) is not None:
        cause, more, remedy = skew
        why += f"; {more}"
    number = len(batches) - begin
    yield Evidence(cause, "", "slow batches", number, 1, begin, why, remedy)


def _total(batch: BatchMetrics) -> float:
    return batch.seconds.get("total", 0.0)


def _parts(batch: BatchMetrics) -> dict[str, float]:
    """Return the seconds of a batch by step; what no step has is Spark's and the source's."""
    known = {step: batch.seconds.get(step, 0.0) for step in STEPS if step != "rest"}
    return known | {"rest": max(0.0, _total(batch) - sum(known.values()) - batch.seconds.get("progress", 0.0))}


def _catches_up(batches: Sequence[BatchMetrics]) -> bool:
    """Return whether the inputs have ever fewer rows that wait: the batches of a backlog are as large as they may be."""
    lags = [sum(one.lag for one in batch.inputs) for batch in batches]
    return lags[0] > lags[-1]


def _skew(batches: Sequence[BatchMetrics], step: str) -> tuple[str, str, str] | None:
    """Return the cause if one task of several has most of the work of a step."""
    of_step: dict[str, list[tuple[float, ...]]] = {
        "plq": [batch.busy for batch in batches],
        "wlq": [batch.wlq_busy for batch in batches],
    }
    busy = of_step.get(step, [])
    shares = [max(one) / sum(one) for one in busy if len(one) > 1 and any(one)]
    if not busy or len(shares) < len(batches) or median(shares) < max(0.5, 1.5 / min(map(len, busy))):
        return None
    share = percent(median(shares))
    if step == "plq":
        remedy = (
            'WorkerOptions(splitting="AS_PID") exchanges the rows; or let the source write partitions of equal size'
        )
        return "skew", f"one task has {share} of the work: partitions are unequal, or a pane is hot", remedy
    remedy = "a finer by=, or keys without that one; more workers do not help"
    return "skew", f"one task has {share} of the work: a key or group has most rows", remedy
