"""Why rows are rejected, or held: what their reason and their share say of the source, and times that cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from skypane.diagnosis.evidence import HELD, HOUR, MINUTE, YEAR, Evidence, Steps, about, is_zone, since
from skypane.metrics import BatchMetrics
from skypane.types import Micros
from skypane.wording import percent, stamp

MOST: Final = 0.5
"""Share of a batch's rows from which a reason is one of the whole source, and not of single rows."""
BATCHES: Final = 3
UNITS: Final = (1_000, 1_000_000)
"""By how much a time is too small if milliseconds are read as microseconds or seconds as milliseconds; seconds as microseconds."""
FIRST_YEAR, LAST_YEAR = 30 * YEAR, 130 * YEAR
"""Times of streams are of this century: what a larger unit puts there was read in a smaller one."""

KEEP: Final = "late= keeps such rows, and `skypane readmit` takes them back"


def rejected_rows(steps: Steps) -> Iterator[Evidence]:
    """Yield why rows are quarantined, by their reason."""
    reasons = dict.fromkeys(reason for step in steps for reason in step.own.quarantined)
    for reason in reasons:
        each = [step.own.quarantined.get(reason, 0) for step in steps]
        begin = next(at for at, rows in enumerate(each) if rows)
        came = sum(step.batch.rows for step, rows in zip(steps, each, strict=True) if rows)
        why, remedy = _why(reason, sum(each) / max(1, came), steps)
        what = f"rejected rows ({reason})"
        yield Evidence("rejected rows", reason, what, sum(each), each[-1], begin, why, remedy, reason=reason)


def _why(reason: str, share: float, steps: Steps) -> tuple[str, str]:
    """Return why rows are rejected for a reason, which are this share of the rows of their batches, and what to do."""
    kind, _, column = reason.partition(" ")
    rows = f"{percent(min(1.0, share))} of the rows of their batches"
    match kind:
        case "clock":
            own = steps[-1].own.clocks
            named = f", that of {next(iter(own))} by {about(next(iter(own.values())))}" if own else ""
            return f"clocks of sources are {column}{named}", 'set these clocks, or clocks="align" corrects their times'
        case "future":
            return (
                "they lay far beyond all others, and the stream has gone on without them: a wrong clock, or a wrong unit",
                f"set the clock of their source; a larger max_ahead= if the stream pauses for that long; {KEEP}",
            )
        case "absurd":
            return (
                (
                    f"{column} is outside the years 1 to 9999 in {rows}: its unit is smaller than it was read, such as "
                    "milliseconds as seconds"
                ),
                "make timestamps of the right unit: sf.timestamp_millis(column), sf.timestamp_micros(column)",
            )
        case "NaN":
            return f"{column} is no number in {rows}", f"repair its source, or leave NaN out before the query; {KEEP}"
        case "null" if share >= MOST:
            return (
                (
                    f"{column} is null in {rows}: the rows have another shape or other names than the schema (JSON, CSV), or its "
                    "text is not of that type"
                ),
                f"compare the source with the schema: the names and the type of {column}; {KEEP}",
            )
        case _:
            return (
                (
                    f"{column} is null in {rows}: it is missing, or its text is not of that type, such as no "
                    "number, which readers make null"
                ),
                f"repair its source, or fill {column} before the query; malformed_column= of sp.inputs shows the text; {KEEP}",
            )


def held_rows(steps: Steps) -> Iterator[Evidence]:
    """Yield the rows that are held while the stream goes on without them."""
    held = [step.own.held_rows for step in steps]
    begin = since(held)
    lasting = [step.own for step in steps[begin:] if step.batch.rows]
    if len(lasting) < BATCHES or lasting[-1].newest == lasting[0].newest:
        return
    ahead = lasting[-1].held_ahead
    by = "" if ahead is None else f" by {about(ahead)}"
    far = [name for name, offset in lasting[-1].clocks.items() if offset >= _held(steps)]
    whose = f"the clock of {far[0]} is ahead" if far else "the clock of their source is ahead, or its unit is another"
    yield Evidence(
        "rows held",
        "",
        "held rows",
        held[-1],
        None,
        begin,
        f"they are beyond all others{by}, while the stream goes on: {whose}",
        "set that clock; they are quarantined as future once patience= rows have come, or answered with a larger max_ahead=",
        reason=HELD,
    )


def _held(steps: Steps) -> float:
    """Return from which offset on rows of a clock are held."""
    ahead = steps[-1].own.held_ahead
    return math.inf if ahead is None else 0.9 * ahead


def wrong_unit(steps: Steps) -> Iterator[Evidence]:
    """Yield that all times are in 1970, since they were read in a unit that is too small."""
    newest = steps[-1].own.newest
    times = [step.own.newest for step in steps if step.own.newest is not None]
    if newest is None or not 0 < newest < YEAR or len(times) < BATCHES:
        return
    moved = newest - min(times)
    unit = next((unit for unit in UNITS if FIRST_YEAR < newest * unit < LAST_YEAR and moved * unit < YEAR), None)
    if unit is None:
        return
    read = "seconds" if unit == UNITS[1] else "milliseconds"
    yield Evidence(
        "times in the wrong unit",
        "",
        "rows in 1970",
        sum(step.batch.rows for step in steps),
        steps[-1].batch.rows,
        0,
        f"the newest time is {stamp(newest)}, and would be {stamp(newest * unit)} in the right unit: {read} were read as microseconds",
        "make timestamps of the right unit: sf.timestamp_millis(column) or sf.timestamp_seconds(column)",
    )


def clocks_off(steps: Steps) -> Iterator[Evidence]:
    """Yield the clocks that are ahead of the stream, whose rows are answered late and may be held, or those that answers wait for."""
    ahead, behind = _clocks_between(steps, MINUTE, _held(steps)), _clocks_between(steps, -math.inf, -MINUTE)
    waited = [
        {name: by for name, by in of.items() if (step.own.slack or 0) > -0.9 * by}
        for of, step in zip(behind, steps, strict=True)
    ]
    off = ahead if ahead[-1] else waited
    begin = since(off)
    if not off[-1] or len(off[-1]) > len(steps[-1].own.rows_by_source) / 2 > 1:
        return
    worst = next(iter(off[-1]))
    rows = [sum(step.own.rows_by_source.get(name, 0) for name in off[-1]) for step in steps]
    yield Evidence(
        "clock off",
        "",
        "rows of clocks ahead" if ahead[-1] else "rows of clocks behind",
        sum(rows[begin:]),
        rows[-1],
        begin,
        f"the clock of {worst} is about {about(off[-1][worst])} {'ahead' if ahead[-1] else 'behind, and answers wait for its rows'}",
        'set that clock, or clocks="align" of the progress policy',
    )


def _clocks_between(steps: Steps, least: float, most: float) -> list[dict[str, Micros]]:
    return [{name: by for name, by in step.own.clocks.items() if least <= by < most} for step in steps]


def ahead_of_here(batches: Sequence[BatchMetrics]) -> Iterator[Evidence]:
    """Yield that rows come with times that are ahead of this machine's clock by the offset of a time zone, as they come."""
    ahead = [
        batch.rows > 0
        and batch.newest is not None
        and (by := batch.newest - (batch.started_at + batch.seconds.get("total", 0.0)) * 1e6) > HOUR / 2
        and is_zone(round(by), MINUTE)
        for batch in batches
    ]
    begin = since([is_ahead or not batch.rows for is_ahead, batch in zip(ahead, batches, strict=True)])
    if sum(ahead[begin:]) < BATCHES + 2:
        return
    last = batches[-1]
    by = round((last.newest or 0) - last.started_at * 1e6)
    yield Evidence(
        "time zone",
        "",
        "rows in the future",
        sum(batch.rows for batch in batches[begin:]),
        last.rows,
        begin,
        f"their times are {about(by)} ahead of this machine's clock: local times were read as UTC",
        "give the times their zone: sf.to_utc_timestamp(column, zone), or spark.sql.session.timeZone",
    )
