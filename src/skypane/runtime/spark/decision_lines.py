"""The decisions of a query's policies in words: one line each, with the decision, if it is a name, and its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skypane.metrics import BatchMetrics
from skypane.policy import Decision


def explained(workers: str, batches: Iterable[BatchMetrics], sources: Iterable[Decision[Any]]) -> str:
    """Return the reason for the numbers of workers, and the other decisions for the last of `batches`, if there is one.

    sources   the present decisions of the source of rows; metrics may have earlier ones
    """
    last = next(iter(batches), None)
    decisions = {one.what: one for one in (*(() if last is None else last.decisions), *sources)}
    queries = {} if last is None else last.queries
    each = (line for name, one in queries.items() for line in _lines(one.decisions, f" of {name}"))
    return "\n".join([f"workers: {workers}", *_lines(decisions.values()), *each])


def _lines(decisions: Iterable[Decision[Any]], query: str = "") -> Iterator[str]:
    for one in decisions:
        if (
            one.what != "workers"
        ):  # decided at the end of a control interval only; the first line has the reason of the numbers in force
            named = _named(one.value)
            yield f"{one.what}{query}: {named}{'; ' if named else ''}{one.because}"


def _named(value: Any) -> str:
    """Return a decision that is a name or a place; "" for numbers, which are in the reason."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return str(value.get("where", ""))
    return value if isinstance(value, str) else ""
