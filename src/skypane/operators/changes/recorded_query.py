"""A query that a checkpoint records, as describe() wrote it, made runnable again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.constructors import count
from skypane.operators.changes.aggregate_state import aggregate_of
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Preference
from skypane.preference.criteria import Around, Component, Criterion, High, Low, Target
from skypane.snapshots import through_json
from skypane.types import ConfigError


def query_of(recorded: Mapping[str, Any], known: Query) -> Query:
    """Return the query that describe() recorded; functions of your own are found among those of `known`.

    Raises ConfigError if only the query's own code can make it: it is of a class, or has a function, that is not
    skypane's own.
    """
    build = _BUILT.get(recorded.get("query", ""))
    if build is None:
        raise ConfigError(f"the earlier query, {recorded.get('query')!r}, can be run only by its own code")
    try:
        query = build(recorded, known)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConfigError(f"the earlier query cannot be built from its record: {error}") from error
    if through_json(query.describe()) != recorded:
        raise ConfigError(f"the earlier query, {recorded['query']!r}, was recorded by another version of skypane")
    return query


def _skyline(recorded: Mapping[str, Any], _: Query) -> Query:
    return Skyline(_preference(recorded), recorded["by"])


def _k_dominant(recorded: Mapping[str, Any], _: Query) -> Query:
    return KDominant(recorded["k"], _preference(recorded), recorded["by"])


def _top_delta(recorded: Mapping[str, Any], _: Query) -> Query:
    return TopDelta(recorded["delta"], _preference(recorded), recorded["by"])


def _top_k(recorded: Mapping[str, Any], _: Query) -> Query:
    return TopK(recorded["k"], recorded["score"], recorded["by"], recorded["largest"])


def _aggregate(recorded: Mapping[str, Any], known: Query) -> Query:
    return aggregate_of(recorded, known if isinstance(known, Aggregate) else Aggregate(rows=count()))


_BUILT: Mapping[str, Callable[[Mapping[str, Any], Query], Query]] = {
    "skyline": _skyline,
    "k_dominant": _k_dominant,
    "top_delta": _top_delta,
    "top_k": _top_k,
    "aggregate": _aggregate,
}


def _preference(recorded: Mapping[str, Any]) -> Preference:
    """Return the ranking part of a preference; its groups are recorded in "by"."""
    return Preference(tuple(tuple(_component(one) for one in level) for level in recorded["levels"]))


def _component(recorded: list[list[Any]]) -> Component:
    return tuple(_criterion(*one) for one in recorded)


def _criterion(column: str, kind: str, *interval: Any) -> Criterion:
    if kind == "around":
        lo, hi = (_target(one) for one in interval)
        return Around(column, lo, hi)
    return Low(column) if kind == "low" else High(column)


def _target(recorded: Any) -> Target:
    if not isinstance(recorded, str):
        target: Target = recorded
        return target
    if "." in recorded and "T" not in recorded:
        return Decimal(recorded)
    return datetime.fromisoformat(recorded) if "T" in recorded else date.fromisoformat(recorded)
