"""The causes that hold after a batch, by the metrics of the last ones: a pure fold, in which a cause keeps its beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from skypane.cause import Cause
from skypane.diagnosis import late_causes, rejection_causes, slow_causes, waiting_causes
from skypane.diagnosis.evidence import FAMILIES, Evidence, Step, since
from skypane.metrics import BatchMetrics

HISTORY: Final = 60
"""Batches by which causes are decided."""
LINGER: Final = 20
"""Batches for which a cause holds after the last one in which it has shown, so that one that comes and goes is reported once."""

_WEIGHTS: Final = {name: weight for weight, name in enumerate(FAMILIES)}
_OF_ROWS: Final = (
    late_causes.late_rows,
    rejection_causes.rejected_rows,
    rejection_causes.wrong_unit,
    rejection_causes.clocks_off,
    rejection_causes.held_rows,
    waiting_causes.stuck,
    waiting_causes.silent_source,
)
_OF_STREAM: Final = (
    late_causes.amended_windows,
    rejection_causes.ahead_of_here,
    waiting_causes.silent_input,
    waiting_causes.inputs,
    waiting_causes.disk,
    slow_causes.slow_batches,
)


def diagnose(history: Sequence[BatchMetrics]) -> tuple[Cause, ...]:
    """Return the causes that hold after the last of these batches, in order of weight.

    The earlier batches have their causes; those of the one before go on, with their beginning, if they still show.
    """
    history = history[-HISTORY:]
    batch, before = history[-1], history[-2].causes if len(history) > 1 else ()
    known = {family_of(one): one for one in before}
    found: dict[tuple[str, str, str], Cause] = {}
    for evidence, query in _found(history):
        family = FAMILIES[evidence.name], evidence.about, query
        if family not in found and (evidence.shows or family in known):
            found[family] = _cause(evidence, query, history, known.get(family))
    still = [one for one in (known | found).values() if batch.batch_id - one.last < LINGER]
    return tuple(sorted(still, key=lambda one: (_WEIGHTS[one.name], one.about, one.query)))


def family_of(cause: Cause) -> tuple[str, str, str]:
    """Return what makes two causes of successive batches one that goes on, although its name may have become more specific."""
    return FAMILIES[cause.name], cause.about, cause.query


def _cause(evidence: Evidence, query: str, history: Sequence[BatchMetrics], known: Cause | None) -> Cause:
    """Return a cause that shows, with the beginning, and mostly with the texts, that it has had so far."""
    batch, first = history[-1], history[evidence.begin]
    texts = {name: getattr(evidence, name) for name in ("name", "what", "why", "remedy", "reason")}
    if known is None:
        number, begun = evidence.number, (first.batch_id, first.started_at)
        return Cause(
            about=evidence.about, query=query, number=number, batch=begun[0], since=begun[1], last=batch.batch_id,
            stated=number, **texts,
        )  # fmt: skip
    number = evidence.number if evidence.fresh is None else known.number + evidence.fresh
    still = replace(known, number=number, last=batch.batch_id if evidence.shows else known.last)
    if _WEIGHTS[evidence.name] < _WEIGHTS[known.name] or number >= 2 * known.stated:
        return replace(still, stated=number, **texts)
    return still


def _found(history: Sequence[BatchMetrics]) -> Iterator[tuple[Evidence, str]]:
    """Yield what the rules find, with the query that it is of; "" if it is the same for all queries."""
    for of_stream in _OF_STREAM:
        yield from ((evidence, "") for evidence in of_stream(history))
    by_query: dict[str, list[Evidence]] = {}
    for query in history[-1].queries or [""]:
        steps = [Step(batch, batch.queries[query] if query else batch) for batch in _of(query, history)]
        after = len(history) - len(steps)
        by_query[query] = [
            replace(evidence, begin=evidence.begin + after) for rule in _OF_ROWS for evidence in rule(steps)
        ]
        if any(one.name == "punctuation waits" for one in by_query[query]):  # its line names the source
            by_query[query] = [one for one in by_query[query] if one.name != "source silent"]
    every = [{(one.name, one.about) for one in found} for found in by_query.values()]
    common = set.intersection(*every)
    for query, found in by_query.items():
        yield from ((one, "" if (one.name, one.about) in common else query) for one in found)


def _of(query: str, history: Sequence[BatchMetrics]) -> Sequence[BatchMetrics]:
    """Return the last batches that have the query."""
    return history[since([not query or query in batch.queries for batch in history]) :]


def stopped(history: Sequence[BatchMetrics], now: float) -> Cause | None:
    """Return that no batch has come by the time `now`, in seconds since the epoch, for far longer than before."""
    return next((_cause(one, "", history, None) for one in waiting_causes.stopped(history, now)), None)


def all_causes(batches: Sequence[BatchMetrics]) -> tuple[Cause, ...]:
    """Return each cause that has held in these batches once, with its last numbers, in order of weight."""
    latest = {one.key: one for batch in batches for one in batch.causes}
    return tuple(sorted(latest.values(), key=lambda one: (_WEIGHTS[one.name], one.batch)))
