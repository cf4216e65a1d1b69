"""Why answers wait: a punctuation that waits for a source, inputs and sources that are silent, gone or fall behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from skypane.diagnosis.evidence import Evidence, Steps, learned, since
from skypane.metrics import BatchMetrics, InputMetrics, QueryMetrics
from skypane.wording import count, percent, seconds

WAITS: Final = 10
"""Batches with rows, or reports of inputs, for which something has to last."""
LONGER: Final = 3
"""By how much a silence has to be longer than all before it."""
STEADY: Final = 0.9
"""Share of the batches in which something has to come, for its absence to be a sign."""
PATIENCE: Final = 60.0
"""Seconds without a batch up to which a stream is not silent, whatever came before."""
MUCH: Final = 20
"""How many times the longest pause of the last batches it has to be without one."""


def stuck(steps: Steps) -> Iterator[Evidence]:
    """Yield that rows come, their times move on, and the punctuation does not."""
    last = steps[-1].own
    if last.punctuation is not None and (last.newest is None or last.punctuation > last.newest):
        return  # a drain has closed more than has come
    begin = since([step.own.punctuation == last.punctuation for step in steps])
    came = [step for step in steps[begin:] if step.batch.rows]
    if len(came) < WAITS or not all(_waits(came[-back].own, last) for back in (WAITS, WAITS // 2)):
        return
    if last.punctuation is not None and begin < WAITS and learned(steps, 2 * (last.slack or 0)) == len(steps):
        return  # as long as the policy learns how late rows come
    progress = next((one for one in last.decisions if one.what == "progress"), None)
    yield Evidence(
        "punctuation waits",
        "",
        "batches without an answer",
        len(came),
        1 if steps[-1].batch.rows else 0,
        begin,
        "the punctuation does not move while rows come" + ("" if progress is None else f": {progress.because}"),
        "a shorter idle_after= or max_behind= of sp.Readiness, or leave out a source in sources= that does not send",
    )


def _waits(before: BatchMetrics | QueryMetrics, after: BatchMetrics | QueryMetrics) -> bool:
    """Return whether the newest time has moved on, and the policy waits ever longer; one that waits for a fixed time is not stuck."""
    if before.newest is None or after.newest is None or after.newest <= before.newest:
        return False
    longer = (after.slack or 0) - (before.slack or 0)
    return after.punctuation is None or 2 * longer > after.newest - before.newest


def silent_source(steps: Steps) -> Iterator[Evidence]:
    """Yield the sources that were in each batch, and are in none any more."""
    came = [(at, step.own.rows_by_source) for at, step in enumerate(steps) if step.own.rows_by_source]
    names = dict.fromkeys(name for _, rows in came for name in rows)
    silent = {name: begin for name in names if (begin := _fell_silent([name in rows for _, rows in came])) is not None}
    if len(silent) > 1 + len(names) // 10:  # sources that come and go, such as trips
        return
    for name, begin in silent.items():
        yield _silent("source silent", name, len(came) - begin, came[begin][0])


def silent_input(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield the inputs that brought rows all the time, and do no more, while others do."""
    reports = [(at, batch.inputs) for at, batch in _reports(batches)]
    states = [{one.input: one.state for one in inputs} for _, inputs in reports]
    for name in states[-1] if states else ():
        kept = [at for at, one in enumerate(states) if any(one[other] != "silent" for other in one if other != name)]
        there = [states[at].get(name) != "silent" for at in kept]
        if (begin := _fell_silent(there)) is not None:
            yield _silent("input silent", name, len(there) - begin, reports[kept[begin]][0])


def _fell_silent(there: list[bool]) -> int | None:
    """Return since when something that came steadily comes no more, and that for longer than ever before; else None."""
    begin = max((at + 1 for at, one in enumerate(there) if one), default=0)
    longest = max((len(list(run)) for one, run in groupby(there[:begin]) if not one), default=0)
    silent, steady = len(there) - begin, begin >= WAITS and sum(there) >= STEADY * begin
    return begin if steady and silent >= max(WAITS, LONGER * longest) else None


def _silent(name: str, about: str, number: int, begin: int) -> Evidence:
    return Evidence(
        name,
        about,
        f"batches without a row of {about}",
        number,
        1,
        begin,
        f"{about} sent rows in nearly every batch before, and others still do: it has stopped, or is disconnected",
        "look at that source; sp.Readiness(idle_after) decides how long windows wait for it, and other policies do not wait",
    )


def inputs(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield the inputs that have lost rows, that are gone, or that grow faster than they are read."""
    last = batches[-1].inputs
    for one in last:
        if one.lost is not None:
            yield Evidence(
                "rows lost at the source",
                one.input,
                f"deletions of unread rows of {one.input}",
                1,
                None,
                len(batches) - 1,
                f"the source has deleted rows before they were read ({one.lost}), and on_loss='skip' goes on without them",
                "a longer retention of the source than a pause of the query may take; on_loss='fail' stops instead",
            )
    if gone := sorted(one.input for one in last if one.state == "gone"):
        is_gone = [any(one.state == "gone" for one in batch.inputs) for batch in batches]
        yield Evidence(
            "input gone",
            "",
            "inputs gone",
            len(gone),
            None,
            since(is_gone),
            f"{_listed(gone)} {'is' if len(gone) == 1 else 'are'} not there any more; rows that were read are kept",
            "bring it back, or take it out of the list of inputs",
        )
    yield from _behind(batches)


def _behind(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    reports = list(_reports(batches))[-WAITS:]
    lags = [sum(one.lag for one in batch.inputs) for _, batch in reports]
    if len(lags) < WAITS or not all(lags) or lags[-1] <= 1.1 * lags[0] or lags[-1] < 0.9 * max(lags):
        return
    worst = max(reports[-1][1].inputs, key=lambda one: (one.lag, one.input))
    yield Evidence(
        "inputs fall behind",
        "",
        "rows that wait",
        lags[-1],
        None,
        reports[0][0],
        f"rows come faster than they are read, most of them in {worst.input} ({percent(worst.lag / lags[-1])})",
        "readers=sp.Readers(latency=...) or more readers=, a larger rows_per_trigger=, more workers by elastic=",
    )


def _reports(batches: Sequence[BatchMetrics]) -> Iterator[tuple[int, BatchMetrics]]:
    """Yield the batches with a new report of inputs, which several batches may share, with their places."""
    before: tuple[InputMetrics, ...] = ()
    for at, batch in enumerate(batches):
        if batch.inputs and batch.inputs != before:
            yield at, batch
        before = batch.inputs


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {count(len(names) - 3)} more" if len(names) > 3 else "")


def stopped(batches: Sequence[BatchMetrics], now: float) -> Iterator[Evidence]:
    """Yield that no batch has come by the time `now` for much longer than ever between the last batches."""
    ends = [batch.started_at + batch.seconds.get("total", 0.0) for batch in batches]
    pauses = [after.started_at - end for end, after in zip(ends, batches[1:], strict=False)]
    if len(pauses) < WAITS // 2:
        return
    silence, usual = now - ends[-1], max(pauses) + max(batch.seconds.get("total", 0.0) for batch in batches)
    if silence <= max(PATIENCE, MUCH * usual):
        return
    yield Evidence(
        "no rows",
        "",
        "seconds without a batch",
        round(silence),
        None,
        len(batches) - 1,
        f"no rows have come, or a batch takes long; before, one came every {seconds(max(usual, 0.1))} at least",
        "look at the source, and at handle.status; nothing is lost, and open windows wait, or handle.drain() answers them",
    )


def disk(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield that the disk of the checkpoint is nearly full."""
    full = [batch.disk is not None and batch.disk[0] < min(batch.disk[1] // 20, 2 << 30) for batch in batches]
    place = batches[-1].disk
    if not full[-1] or place is None:
        return
    begin = since(full)
    yield Evidence(
        "disk nearly full",
        "",
        "batches on a full disk",
        len(batches) - begin,
        1,
        begin,
        f"the disk of the checkpoint has {count(place[0] >> 20)} MiB left of {count(place[1] >> 20)}",
        "free space there, or move checkpoint= and output=; a batch that finds no space fails, and the next start repeats it",
    )
