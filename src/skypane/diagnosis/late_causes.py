"""Why rows are late: one reason at a time, the most specific one that explains most of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from skypane.diagnosis.evidence import DAY, MINUTE, YEAR, Evidence, Steps, about, is_zone, learned
from skypane.metrics import BatchMetrics
from skypane.types import Length, Micros
from skypane.wording import count, percent, span

FEW: Final = 10
"""Up to this number late rows need no explanation, unless a single clock or a drain explains them."""
SHARE: Final = 0.05
"""Share of the last rows that may be late if the policy has no budget."""
RESERVE: Final = 100
"""Rows by which a policy may exceed its budget for a while: the credit that it keeps for what it cannot foresee."""
ALL: Final = 0.9
"""Share of a batch's rows from which all are late."""
AGAIN: Final = 3
"""Batches in succession whose rows are all late."""
FIRST: Final = 5
"""Batches after the first start in which a policy still learns."""

AMEND: Final = 'late=sp.Amend("1 day") corrects the answers'


def late_rows(steps: Steps) -> Iterator[Evidence]:
    """Yield the reason why rows are late, if a budget is broken, or if a single cause explains it."""
    late = [step.own.late_rows for step in steps]
    if not any(late):
        return
    fresh, begin, found = late[-1], 0, _certain(steps)
    if found is None and not _all_late(steps):
        if _all_late(steps[:-1]) and _certain(steps[:-1]) is None:
            fresh += late[-2]
        begin = _learning(steps)
        found = _of_many(steps[begin:]) if _is_broken(steps[begin:]) else None
    if found is not None:
        begin += next(at for at, rows in enumerate(late[begin:]) if rows)
        name, why, remedy = found
        yield Evidence(
            name, "", "late rows", sum(late[begin:]), fresh, begin, why + _share(steps), remedy, reason="late"
        )


def _all_late(steps: Steps) -> bool:
    """Return whether all rows of the last batch are late: the next one shows whether the stream has gone back."""
    return bool(steps) and 0 < ALL * steps[-1].batch.rows <= steps[-1].own.late_rows


def _learning(steps: Steps) -> int:
    """Return the number of these batches in which the policy still learned: their late rows need no explanation."""
    if steps[0].batch.batch_id:
        return 0
    bound = steps[-1].batch.max_slack  # without one, a policy learns no delay
    return max(FIRST, 0 if bound is None else learned(steps, min(bound, _largest(steps, "most"))))


def _share(steps: Steps) -> str:
    """Return what part of all rows was late, and what part may be."""
    batch, own = steps[-1]
    if batch.drop_budget is None:
        return ""
    dropped = percent(own.dropped_rows / max(1, own.seen_rows))
    return f", {dropped} of all rows where max_drop is {percent(batch.drop_budget)}"


def _is_broken(steps: Steps) -> bool:
    """Return whether more of the rows of these batches are late than may be, and of all rows, too, if there is a budget."""
    late, rows = sum(step.own.late_rows for step in steps), sum(step.batch.rows for step in steps)
    budget = steps[-1].batch.drop_budget if steps else None
    if budget is None:
        return late >= FEW and late > SHARE * rows
    allowed, own = budget * rows, steps[-1].own
    return late - allowed > max(FEW, min(RESERVE, allowed / 2)) and own.dropped_rows > budget * own.seen_rows


class _Found(NamedTuple):
    name: str
    why: str
    remedy: str


def _certain(steps: Steps) -> _Found | None:
    """Return a reason that is one however few rows are late, and while a policy learns."""
    late = sum(step.own.late_rows for step in steps)
    drained = _after_drain(steps)
    if 2 * drained >= late:
        return _Found(
            "drained too early",
            "a drain has closed the windows of rows that came after it",
            f"drain when all rows have come, without now; {AMEND}",
        )
    median = _largest(steps, "median")
    if median >= 10 * YEAR:
        return _Found(
            "late in the wrong unit",
            f"their times are {about(median)} before all others, so they are in another unit or of a clock that was reset",
            "make timestamps of the unit that the column has, such as sf.timestamp_millis(column), and correct the clock",
        )
    return _again(steps) or _clocks(steps, late) or (_constant(steps, late) if _is_broken(steps) else None)


def _after_drain(steps: Steps) -> int:
    """Return the number of rows that are late because a drain has moved the punctuation beyond the newest row."""
    rows, closed = 0, None
    for before, after in itertools.pairwise(steps):
        time, newest = before.own.punctuation, before.own.newest
        if time is not None and newest is not None and time > newest:
            closed = time
        if closed is not None and time == closed:
            rows += after.own.late_rows
    return rows


def _again(steps: Steps) -> _Found | None:
    """Return the reason if all rows of some batches are late, and the newest time has not moved since."""
    last = [step for step in steps if step.batch.rows][-AGAIN:]
    if len(last) < AGAIN or any(step.own.late_rows < 0.9 * step.batch.rows for step in last):
        return None
    newest = last[-1].own.newest
    same = [step for step in steps if step.own.newest == newest and step.own.delays]
    by = min((step.own.delays["least"] for step in same), default=0)
    first = same[0].own.delays["least"] if same else by
    if len(same) < len(last):
        return None
    zone = is_zone(first, 10 * MINUTE)
    return _Found(
        "read again",
        f"all rows are late since their times went back by {about(first)}: "
        + ("a time zone has changed" if zone else "old rows are sent or read again"),
        "give the times their zone: sf.to_utc_timestamp(column, zone), or spark.sql.session.timeZone"
        if zone
        else "let the producer go on where it was, or answer the old rows with a new checkpoint",
    )


def _clocks(steps: Steps, late: int) -> _Found | None:
    """Return the reason if clocks that are off explain most late rows."""
    own = steps[-1].own
    behind = {name: by for name, by in own.clocks.items() if by <= -MINUTE}
    others = sorted(own.rows_by_source.keys() - own.clocks.keys())
    by_source = _by_source(steps)
    if not behind or 2 * sum(by_source[name] for name in behind) < late:
        return None
    if others and 2 * len(behind) >= len(own.rows_by_source) > 2 and len(others) <= len(behind):
        by = sorted(behind.values())[len(behind) // 2]
        return _Found(
            "clock ahead",
            f"the clock of {_named(others)} is about {about(by)} ahead and moves the punctuation before the rows of all others",
            'set that clock; clocks="align" or "quarantine" of the progress policy, or sp.AqKSlack(), which waits for the others',
        )
    worst = min(behind, key=lambda name: (behind[name], name))
    more = f", and {count(len(behind) - 1)} more are" if len(behind) > 1 else ""
    return _Found(
        "clock behind",
        f"the clock of {worst} is about {about(behind[worst])} behind{more}",
        'set that clock, or clocks="align" of the progress policy',
    )


def _of_many(steps: Steps) -> _Found:
    """Return the reason of late rows that break a budget."""
    late = sum(step.own.late_rows for step in steps)
    return _input(steps) or _source(steps, late) or _bound(steps) or _order(steps, late)


def _input(steps: Steps) -> _Found | None:
    waits = [one for one in steps[-1].batch.inputs if one.state == "behind" and (one.waiting or 0) * 1e6 >= MINUTE / 60]
    if not waits:
        return None
    worst = max(waits, key=lambda one: (one.waiting or 0, one.input))
    return _Found(
        "input behind",
        f"the input {worst.input} is read {span(round((worst.waiting or 0) * 1e6))} of event time behind what it has, after rows of others",
        "align= of sp.inputs reads inputs in step; more readers=, or more rows_per_trigger=",
    )


def _source(steps: Steps, late: int) -> _Found | None:
    """Return the reason if most late rows are from one source."""
    (name, rows), *_ = (*_by_source(steps).most_common(1), ("", 0))
    if not name or 2 * rows < late:
        return None
    each = [step.own.late_by_source.get(name, 0) for step in steps]
    most = span(_largest(steps, "most"))
    share = percent(rows / late)
    if sum(sorted(each)[-3:]) > rows / 2 and sum(map(bool, each)) <= len(each) / 4:
        return _Found(
            "uploads",
            f"{name} sends what it has kept all at once, up to {most} later: {share} of the late rows are its own",
            f"{AMEND}, or a longer wait: a larger max_slack, a longer Watermark",
        )
    return _Found(
        "source behind",
        f"{name} comes up to {most} after the others: {share} of the late rows are its own",
        'sp.Readiness("5 minutes") waits for each source; a larger delay or max_drop; or repair its connection',
    )


def _constant(steps: Steps, late: int) -> _Found | None:
    """Return the reason if the late rows are all late by about the same, as of a clock; no source is named."""
    own = [step.own for step in steps if step.own.late_rows >= FEW]
    medians = sorted(one.delays["median"] for one in own if one.delays)
    if len(medians) < FIRST or medians[0] < MINUTE or medians[-1] > 1.2 * medians[0]:
        return None
    by = medians[len(medians) // 2]
    many = late > sum(step.batch.rows for step in steps if step.own.late_rows) / 2
    which = "the clock of a few rows is ahead" if many else "the clock of some rows is behind"
    return _Found(
        "clock ahead" if many else "clock behind",
        f"{which}, constantly by about {about(by)}",
        'name the column with the source, source=, to see which; then set that clock, or clocks="align"',
    )


def _bound(steps: Steps) -> _Found | None:
    """Return the reason if the policy waits as long as it may, or late rows are beyond that."""
    most, bound = _largest(steps, "median"), steps[-1].batch.max_slack
    slack = steps[-1].own.slack
    if bound is None or slack is None or (slack < 0.9 * bound and most < bound):
        return None
    return _Found(
        "max_slack too small",
        f"they come {span(most)} after newer ones at the median, and max_slack={Length(bound)!r} is the longest wait",
        f"max_slack={_length(_largest(steps, 'most'))!r}, or {AMEND}",
    )


def _order(steps: Steps, late: int) -> _Found:
    own = steps[-1].own
    shares = sorted(step.own.late_rows / step.batch.rows for step in steps if step.own.late_rows and step.batch.rows)
    blocks = "in whole blocks, " if shares and shares[len(shares) // 2] >= 0.2 else ""
    unavoidable = own.unavoidable_rows or 0
    first = f", {count(unavoidable)} later than any row before" if unavoidable else ""
    wait = _length(_largest(steps, "most"))
    budget = steps[-1].batch.drop_budget
    lasting = max(late / max(1, sum(step.batch.rows for step in steps)), own.dropped_rows / max(1, own.seen_rows))
    remedy = (
        f"Watermark({wait!r}), or sp.AqKSlack(max_drop=0.01), which learns the delay"
        if budget is None
        else f"max_drop={_above(lasting)}, or the longer wait of sp.Watermark({wait!r})"
    )
    return _Found(
        "out of order",
        f"rows come {blocks}up to {span(_largest(steps, 'most'))} after newer ones{first}",
        f"{remedy}; {AMEND}",
    )


def _by_source(steps: Steps) -> Counter[str]:
    rows: Counter[str] = Counter()
    for step in steps:
        rows.update(step.own.late_by_source)
    return rows


def _largest(steps: Steps, which: str) -> Micros:
    return max((step.own.delays.get(which, 0) for step in steps), default=0)


def _named(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {count(len(names) - 1)} more"


def _above(share: float) -> float:
    """Return a share a little above this one, with one significant digit: 0.013 as 0.02."""
    digits = next((digits for digits in range(1, 9) if share >= 10**-digits), 9)
    return float(f"{int(share * 10**digits) + 1}e-{digits}")


def _length(time: Micros) -> Length:
    """Return a length rounded up, such as a user would set."""
    unit = next((unit for unit in (DAY, 60 * MINUTE, MINUTE) if time >= 2 * unit), MINUTE // 60)
    return Length(-(-time // unit) * unit)


def amended_windows(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield the reason why more windows are amended than the budget allows."""
    batch, each = batches[-1], [(one.amended or {}).get("windows", 0) for one in batches]
    share, budget = batch.amended_share, batch.amend_budget
    if share is None or budget is None or share <= budget or batch.batch_id < FIRST or sum(each) < FEW:
        return
    yield Evidence(
        "windows amended",
        "",
        "amended windows",
        sum(each),
        each[-1],
        next(at for at, windows in enumerate(each) if windows),
        f"rows come after their windows are answered: {percent(share)} of all windows where max_amended is {percent(budget)}",
        f"max_amended={_above(share)}, or a larger max_slack",
    )
