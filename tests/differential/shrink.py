"""A failing case made small: rows dropped by halves, then columns, parts of the query, batches; whatever still fails is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, TIME, Aggregate, Case, Preference, TopK
from tests.differential.checking import Failure
from tests.differential.definition.aggregate import named
from tests.differential.definition.score import columns_of
from tests.differential.definition.values import dense, is_nan, plain

Try = Callable[[Case], Failure | None]


def shrunk(failure: Failure, attempt: Try, seconds: float = 30.0) -> Failure:
    """Return a failure of a smaller case, as far as one is found in time; it need not fail in the same words."""
    until = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for step in (_halves, _plainer, _rows):
            for case in step(failure.case):
                if time.monotonic() > until:
                    return failure
                found = _attempted(attempt, case)
                if found is not None:
                    failure, smaller = found, True
                    break
            if smaller:
                break
    return failure


def _attempted(attempt: Try, case: Case) -> Failure | None:
    try:
        return attempt(case)
    except Exception:  # noqa: BLE001 - a case that is no longer one, such as a query without its columns
        return None


def _halves(case: Case) -> Iterator[Case]:
    """Yield the case without large parts of its rows."""
    return _rows(case, case.rows.num_rows // 16 + 1)


def _rows(case: Case, least: int = 1) -> Iterator[Case]:
    """Yield the case without some of its rows: a half, a quarter, ..., down to so many."""
    n = case.rows.num_rows
    size = n // 2
    while size >= least:
        for begin in range(0, n, size):
            left = np.concatenate([np.arange(begin), np.arange(min(n, begin + size), n)])
            yield case.take(left)
        size //= 2


def _plainer(case: Case) -> Iterator[Case]:
    """Yield cases in which something is left out or simpler."""
    if case.batch.any():
        yield replace(case, batch=np.zeros_like(case.batch))
    if case.drains:
        yield replace(case, drains=case.drains[1:])
    yield from (replace(case, spec=spec) for spec in _fewer_parts(case.spec))
    needed = _needed(case.spec)
    for name in case.rows.column_names:
        if name not in needed:
            yield replace(case, rows=case.rows.drop_columns([name]))
    yield from _ranked(case)
    if case.windows.offset:
        yield replace(case, windows=replace(case.windows, offset=0))
    if case.windows.slide != case.windows.length:
        yield replace(case, windows=replace(case.windows, slide=case.windows.length))


def _ranked(case: Case) -> Iterator[Case]:
    """Yield the case with one criterion's numbers as their ranks: shorter to read, and to keep."""
    for name in getattr(getattr(case.spec, "preference", None), "columns", ()):
        column = case.rows.column(name)
        if pa.types.is_floating(column.type) and not column.null_count and not is_nan(sum(plain(column))):
            ranks = pa.array(dense(plain(column)), pa.int32())
            yield replace(case, rows=case.rows.set_column(case.rows.column_names.index(name), name, ranks))


def _fewer_parts(spec: Any) -> Iterator[Any]:
    if isinstance(spec, Aggregate):
        for number in range(len(spec.functions)):
            functions = spec.functions[:number] + spec.functions[number + 1 :]
            if functions and (spec.at_least is spec.top is None or spec.functions[number].name != "n"):
                yield replace(spec, functions=functions)
        if spec.at_least is not None or spec.top is not None:
            yield replace(spec, at_least=None, top=None)
        if spec.required:
            yield replace(spec, required=())
    elif not isinstance(spec, TopK):
        yield from (replace(spec, preference=one) for one in _fewer_criteria(spec.preference))
    for number in range(len(spec.by)):
        yield replace(spec, by=spec.by[:number] + spec.by[number + 1 :])


def _fewer_criteria(preference: Preference) -> Iterator[Preference]:
    for at, level in enumerate(preference.levels):
        for number in range(len(level)):
            rest = level[:number] + level[number + 1 :]
            levels = (*preference.levels[:at], *([rest] if rest else []), *preference.levels[at + 1 :])
            if levels:
                yield replace(preference, levels=levels)
    if preference.groups:
        yield replace(preference, groups=preference.groups[1:])


def _needed(spec: Any) -> set[str]:
    names = {TIME, ID, *spec.by}
    if isinstance(spec, TopK):
        return names | set(columns_of(spec.score))
    if isinstance(spec, Aggregate):
        used = (name for one in spec.functions for name in (*one.columns, *named(one.where)))
        return names | set(spec.required) | set(used)
    return names | set(spec.preference.columns) | set(spec.preference.groups)
